"""Memories in truth: how they are read, and how a change to them begins and ends.

In: ids, paths, moments, filters. Out: frozen values. Every change to a record gives it the next
number of its namespace, so that an index follows truth by `changed_since` and `tombstones_since`.
Reads are plain SQL that both databases know: on SQLite they import no SQLAlchemy. In a sealed home
rows are opened as they are read; what was changed or moved raises `Tampered`, and nothing of it is
returned. It never reads a clock, and it never embeds.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from anaphora.errors import InvalidInput, NotFound, Unreadable
from anaphora.store.codecs import readable, to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows, refuse_another_form
from anaphora.store.db.in_lists import ids_named
from anaphora.store.filters import Filter
from anaphora.store.records.rows import (
    COLUMNS,
    EVENT_COLUMNS,
    MEMORY,
    RecordEvent,
    RecordLink,
    as_mapping,
    event_of,
    path_key_of,
    record_of,
    same_key_of,
)
from anaphora.values.memories import MemoryRecord, Page

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database
    from anaphora.store.records.work import RecordTransaction

_RECORDS = (
    f"SELECT {', '.join(COLUMNS)} FROM record "  # noqa: S608 - names of ours
    f"WHERE namespace = :namespace AND kind = '{MEMORY}' "
)
_BY_ID = _RECORDS + "AND record_id = :id"
_CHANGED = _RECORDS + "AND seq > :since ORDER BY seq LIMIT :limit"
_BACKWARDS = _RECORDS + "AND seq < :before ORDER BY seq DESC LIMIT :limit"
_CURRENT = "AND valid_until IS NULL AND forgotten_at IS NULL "
_SAME = _RECORDS + "AND same_key = :same_key " + _CURRENT + "ORDER BY valid_from, record_id"
_OF_PATH = _RECORDS + "AND path_key = :path_key ORDER BY valid_from, valid_until, record_id"
_VALID = (
    _RECORDS
    + "AND forgotten_at IS NULL AND valid_from <= :moment "
    + "AND (valid_until IS NULL OR valid_until > :moment) "
    + "AND (expires_at IS NULL OR expires_at > :moment) AND record_id > :after "
    + "ORDER BY record_id LIMIT :limit"
)
_EVENTS = (
    f"SELECT {', '.join(EVENT_COLUMNS)} FROM record_event "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND record_id = :id ORDER BY at, seq"
)
_TOMBSTONES = (
    "SELECT seq, owner_id FROM tombstone WHERE namespace = :namespace AND kind = 'memory' "
    "AND seq > :since ORDER BY seq LIMIT :limit"
)
# Not one SELECT with OR: SQLite read every link of the namespace for that.
_LINKS = " UNION ALL ".join(
    "SELECT record_id, other_id, kind, strength FROM link "  # noqa: S608 - names of ours
    f"WHERE namespace = :namespace AND {end} IN ({{ids}})"
    for end in ("record_id", "other_id")
)
_SAME_TEXT = (
    "SELECT record_id FROM record WHERE namespace = :namespace AND kind = 'memory' "
    "AND text = :text ORDER BY record_id"
)
_AS_LONG = _RECORDS + "AND LENGTH(text) = :length ORDER BY record_id"

# Rows taken at once where all are looked at, and ids named in one statement.
_STEP = 512
_NO_LIMIT = 2**62
_SEQ = COLUMNS.index("seq")


class Records:
    """The memories of one namespace. Every read sees every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self.truth = truth
        self.namespace = namespace
        self._sealer = sealer
        self._known_form = False
        self._passed: set[str] = set()

    def check(self) -> None:
        """Raise `SealChanged` when the home was sealed, opened up or given other keys meanwhile."""
        self._sealer.check()

    @contextmanager
    def change(self) -> Iterator[RecordTransaction]:
        """One write transaction: what was done in it is kept whole or not.

        When it ends, everything is on the disk. `ReadOnly`, `DiskFull` or `StoreError` when the
        database refuses; `SealChanged`, `MissingKey` or `Tampered` where the rows that are there
        are sealed in another way.
        """
        from anaphora.store.records.work import RecordTransaction

        self._refuse_another_form()
        with self.truth.write(self.namespace) as write:
            # Within the transaction: from here on no conversion can begin to change rows.
            self._sealer.check()
            work = RecordTransaction(write, self._sealer)
            yield work
            work.flush()

    def _refuse_another_form(self) -> None:
        """Clear and sealed rows, or those of two keys, must never come to lie side by side."""
        if self._known_form:
            return
        refuse_another_form(self.truth, self._sealer)
        self._known_form = True

    def version(self) -> int:
        """The number of the last committed change in the namespace, of whatever kind."""
        return self.truth.version(self.namespace)

    def get(self, record_id: str) -> MemoryRecord:
        """The record, superseded and softly forgotten ones too. `NotFound`, or `Unreadable`."""
        found = self._opened(_BY_ID, id=record_id)
        if not found:
            raise NotFound("memory", record_id)
        return record_of(found[0])

    def many(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The records of these ids that exist, by id."""
        found: dict[str, MemoryRecord] = {}
        for some, names in ids_named(record_ids):
            for record in self._records(_RECORDS + f"AND record_id IN ({names})", **some):
                found[record.id] = record
        return found

    def unreadable(self) -> tuple[str, ...]:
        """The ids of rows that were passed over, and still cannot be read."""
        waiting = tuple(self._passed)
        if waiting:
            self._passed -= self.many(waiting).keys()
            there: set[str] = set()
            for some, names in ids_named(waiting):
                asked = _RECORDS + f"AND record_id IN ({names})"
                there |= {row[0] for row in self._rows(asked, **some)}
            self._passed &= there
        return tuple(sorted(self._passed))

    def by_identity(self, record: MemoryRecord) -> MemoryRecord | None:
        """The current memory of the same type, path, payload and NFC text, if there is one."""
        key = self._sealer.lookup("same_key", self.namespace, same_key_of(record))
        found = self._records(_SAME, same_key=key)
        return found[0] if found else None

    def current(self, path: str) -> MemoryRecord | None:
        """The present value of a path."""
        living = [r for r in self.history(path) if r.valid_to is None and not r.forgotten]
        return living[-1] if living else None

    def history(self, path: str) -> tuple[MemoryRecord, ...]:
        """Every value that the path had, oldest first, softly forgotten ones among them."""
        key = self._sealer.lookup("path_key", self.namespace, str(path_key_of(path)))
        found = self._records(_OF_PATH, path_key=key)
        return tuple(
            # Databases differ in where an open end sorts.
            sorted(found, key=lambda r: (r.valid_from, r.valid_to is None, r.valid_to or 0, r.id))
        )

    def valid_at(self, moment: datetime) -> Iterator[MemoryRecord]:
        """What was true at `moment`: one value for each path, nothing expired or forgotten."""
        after, at = "", to_micros(moment)
        while found := self._opened(_VALID, moment=at, after=after, limit=_STEP):
            yield from readable(found, self._record)
            after = found[-1][0]

    def list(
        self,
        keep: Filter | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        now: datetime | None = None,
        history: bool = False,
    ) -> Page[MemoryRecord]:
        """A page of at most `limit` records that `keep` lets through, the last changed first.

        `now` leaves out what has expired by then; `history` brings superseded and softly forgotten
        ones in. A record that changes while pages are fetched moves to the front, behind which a
        later page does not look. `InvalidInput` for a limit below 1 or a cursor of another kind.
        """
        if limit < 1:
            raise InvalidInput("limit", limit, "expected at least 1")
        found: list[MemoryRecord] = []
        for record in self._backwards(_seq_of(cursor), history):
            expired = now is not None and record.expires_at is not None and record.expires_at <= now
            if expired or (keep is not None and not keep.matches(as_mapping(record))):
                continue
            if len(found) == limit:
                return Page(tuple(found), _cursor_of(found[-1].seq))
            found.append(record)
        return Page(tuple(found))

    def events(self, record_id: str) -> tuple[RecordEvent, ...]:
        """Every time that the memory was said or changed, in order of time."""
        found = self._rows(_EVENTS, id=record_id)
        opened = open_rows(self._sealer, "record_event", EVENT_COLUMNS, self.namespace, found)
        return tuple(readable(opened, event_of))

    def links(self, record_ids: Iterable[str]) -> tuple[RecordLink, ...]:
        """The links that have one of these ids at either end, each once, the closest first."""
        found: dict[tuple[str, str], RecordLink] = {}
        for some, names in ids_named(record_ids):
            for row in self._rows(_LINKS.format(ids=names), **some):
                found[row[0], row[1]] = RecordLink(*row)
        return tuple(sorted(found.values(), key=lambda k: (-k.strength, k.record_id, k.other_id)))

    def with_text(self, text: str) -> tuple[str, ...]:
        """The ids of all records, in history too, whose text is exactly this."""
        if not self._sealer.sealed:
            return tuple(row[0] for row in self._rows(_SAME_TEXT, text=text))
        # No two sealed forms of a text are the same, but they are of the same length.
        row = {"namespace": self.namespace, "record_id": "", "text": text}
        length = len(self._sealer.seal_row("record", row)["text"])
        found = self._open(self._rows(_AS_LONG, length=length), only=())
        at = COLUMNS.index("text")
        return tuple(row[0] for row in found if row[at] == text)

    def payloads(self) -> Iterator[tuple[str, str]]:
        """(record id, payload as JSON) of every memory that has one, in no order."""
        for record_id, payload in self.columns("payload"):
            if payload:
                escaped = "\\" in payload
                plain = json.dumps(json.loads(payload), ensure_ascii=False) if escaped else payload
                yield record_id, plain

    def changed_since(self, since: int, limit: int = _STEP) -> tuple[MemoryRecord, ...]:
        """Records that changed after number `since`, in order of their numbers, at most `limit`.

        None only where there are no more: rows that cannot be read are passed over.
        """
        while rows := self._opened(_CHANGED, since=since, limit=limit):
            if found := tuple(readable(rows, self._record)):
                return found
            since = rows[-1][_SEQ]
        return ()

    def columns(self, *names: str) -> Sequence[tuple[Any, ...]]:
        """(record id, these of COLUMNS as they are stored) of every memory, in no order."""
        if not self._sealer.sealed:
            asked = f"SELECT record_id, {', '.join(names)} FROM record"  # noqa: S608 - names of ours
            found = self._rows(asked + f" WHERE namespace = :namespace AND kind = '{MEMORY}'")
            return open_rows(self._sealer, "record", ("record_id", *names), self.namespace, found)
        # Whole rows: a column that somebody has emptied must not look as if it had been empty.
        at = [0, *(COLUMNS.index(name) for name in names)]
        whole = self._open(self._rows(_RECORDS), only=names)
        return [tuple(row[place] for place in at) for row in whole]

    def tombstones_since(self, since: int, limit: int = _NO_LIMIT) -> tuple[tuple[int, str], ...]:
        """(number, id) of records that were deleted for good after number `since`."""
        return tuple((row[0], row[1]) for row in self._rows(_TOMBSTONES, since=since, limit=limit))

    def _backwards(self, before: int, history: bool) -> Iterator[MemoryRecord]:
        # The first page is usually a small one, and answered by few rows.
        step, statement = 64, _BACKWARDS
        if not history:
            statement = statement.replace(" ORDER BY", f" {_CURRENT}ORDER BY")
        while found := self._opened(statement, before=before, limit=step):
            yield from readable(found, self._record)
            before, step = found[-1][_SEQ], _STEP

    def _records(self, statement: str, **values: str | int | None) -> Sequence[MemoryRecord]:
        return list(readable(self._opened(statement, **values), self._record))

    def _record(self, row: Sequence[Any]) -> MemoryRecord:
        try:
            return record_of(row)
        except Unreadable as error:
            self._passed.add(error.id)
            raise

    def _opened(self, statement: str, **values: str | int | None) -> Sequence[tuple[Any, ...]]:
        return self._open(self._rows(statement, **values))

    def _open(
        self, rows: Sequence[tuple[Any, ...]], only: Sequence[str] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        return open_rows(self._sealer, "record", COLUMNS, self.namespace, rows, only)

    def _rows(self, statement: str, **values: str | int | None) -> Sequence[tuple[Any, ...]]:
        self._sealer.check()
        return self.truth.rows(statement, {"namespace": self.namespace, **values})


def _cursor_of(seq: int) -> str:
    return base64.urlsafe_b64encode(f"r{seq}".encode()).decode().rstrip("=")


def _seq_of(cursor: str | None) -> int:
    if cursor is None:
        return _NO_LIMIT
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
        if not text.startswith("r"):
            raise ValueError(text)
        return int(text[1:])
    except (ValueError, binascii.Error, AttributeError) as error:
        raise InvalidInput("cursor", cursor, "expected the cursor of an earlier page") from error
