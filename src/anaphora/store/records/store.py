"""Memories in the database: how they are read, and how a change to them begins and ends.

Every change to a record gives it the next number of its namespace, so that an index follows the
database by `changed_since` and `tombstones_since`. In a sealed home rows are opened as they are
read; what was changed or moved raises `Tampered`, and nothing of it is returned. It never reads a
clock, and it never embeds.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from anaphora.errors import InvalidInput, NotFound, Unreadable
from anaphora.store.codecs import readable
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.tables import LINK, RECORD, RECORD_EVENT
from anaphora.store.filters import ONE_WAY, Filter
from anaphora.store.namespace import NO_LIMIT, STEP, NamespaceReader, Rows, ids_named
from anaphora.store.records.rows import (
    CLOSENESS,
    EVENT_MAPPING,
    IN_CORE,
    LINK_MAPPING,
    MEMORY,
    MERGED,
    RECORD_MAPPING,
    STANDS_ALONE,
    RecordEvent,
    RecordLink,
    as_mapping,
    is_at,
    is_near,
    path_key_of,
)
from anaphora.values.memories import MemoryRecord, Page

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Scrubbing
    from anaphora.store.records.transaction import RecordTransaction

ValueT = TypeVar("ValueT")
LinkRow: TypeAlias = tuple[RecordLink, int]
"""A link and its number."""
_LINK_SEQ = LINK.names.index("seq")
_SEQ, _TEXT = RECORD.names.index("seq"), RECORD.names.index("text")
CURRENT = "AND valid_until IS NULL AND forgotten_at IS NULL "
"""Of records: those that were neither replaced nor forgotten."""

_SHORT = (
    "record_id", "seq", "type", "created_at", "last_reinforced", "reinforced", "valid_from",
    "valid_until", "expires_at", "forgotten_at",
)  # fmt: skip
_SHORT_STEP = 2048
ENDLESS = 2**62
"""Stands for no end and no expiry in texts of short rows."""
_TOMBSTONES = (
    "SELECT seq, owner_id FROM tombstone WHERE namespace = :namespace AND kind IN ({kinds}) "
    "AND seq > :since ORDER BY seq LIMIT :limit"
)
_TOLD = (
    "SELECT told.record_id FROM ("
    "SELECT namespace, record_id FROM record_event "
    "WHERE namespace = :namespace AND seq > :since UNION SELECT namespace, record_id "
    "FROM fact_turn WHERE namespace = :namespace AND seq > :since) AS told "
    "JOIN record ON record.namespace = told.namespace AND record.record_id = told.record_id "
    "WHERE record.seq <= :since AND record.{kinds} ORDER BY told.record_id"
)
_EVENTS = RECORD_EVENT.select() + "AND record_id = :id ORDER BY at, seq"
# Not one SELECT with OR: SQLite read every link of the namespace for that.
_LINKS = " UNION ALL ".join(
    LINK.select() + f"AND {end} IN ({{ids}}) AND kind IN ({{kinds}})"
    for end in ("record_id", "other_id")
)

# UNION, not UNION ALL: what came before is not followed again, so a circle ends.
_RELATIVES = {
    "descendant_of": (
        "WITH RECURSIVE line(id) AS (SELECT record_id FROM record WHERE {own}AND parent = :id "
        "UNION SELECT record_id FROM record JOIN line ON parent = id WHERE {own}) "
        "SELECT id FROM line"
    ),
    "ancestor_of": (
        "WITH RECURSIVE line(id) AS (SELECT parent FROM record WHERE {own}"
        "AND record_id = :id AND parent IS NOT NULL "
        "UNION SELECT parent FROM record JOIN line ON record_id = id "
        "WHERE {own}AND parent IS NOT NULL) SELECT id FROM line"
    ),
}
_LINEAGES_KEPT = 64


class RecordReader(NamespaceReader, Generic[ValueT]):
    """Reads and changes records of some kinds; to it, those of others do not exist.

    `value` gives what a row of theirs stands for, `noun` is what one is called.
    """

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer,
        *,
        kinds: tuple[str, ...],
        noun: str,
        value: Callable[[Sequence[Any]], ValueT],
    ) -> None:
        super().__init__(truth, namespace, sealer)
        self.kinds = kinds
        self._first_kind, self._noun, self._value = kinds[0], noun, value
        # Names of ours, never a caller's words.
        self._named = kind_list = ", ".join(f"'{kind}'" for kind in kinds)
        self._test = test = f"kind IN ({kind_list})" if len(kinds) > 1 else f"kind = {kind_list}"
        self._of_kind = f"namespace = :namespace AND {test} "
        self._all = RECORD.select() + f"AND {test} "
        self._holds_any: tuple[int, bool] = (-1, False)

    @contextmanager
    def change(self, kind: str = "", *, scrub: Scrubbing = False) -> Iterator[RecordTransaction]:
        """One write transaction on the records of a kind, the first by default.

        What was done in it is kept whole or not. When it ends, everything is on the disk.
        `ReadOnly`, `DiskFull` or `StoreError` when the database refuses; `SealChanged`,
        `MissingKey` or `Tampered` where the rows that are there are sealed in another way. With
        `scrub` nothing of what was deleted is left in the files then, unless its `write` says so;
        with "later" once `Database.clean` was called.
        """
        from anaphora.store.records.transaction import RecordTransaction

        with self._writing(scrub=scrub) as write:
            work = RecordTransaction(write, self.sealer, kind or self._first_kind)
            yield work
            work.finish()

    def standing_alone(self) -> set[str]:
        """The ids of records that stand for themselves: nothing is linked to them."""
        statement = f"SELECT record_id FROM record WHERE {self._of_kind}AND same_key = :key"  # noqa: S608
        return {row[0] for row in self._rows(statement, key=self._lookup("same_key", STANDS_ALONE))}

    def holds_any(self) -> bool:
        """Whether there is any record of these kinds, past ones too."""
        version, (known_version, holds_any) = self.version(), self._holds_any
        if version != known_version:
            # Where there was none, only later changes are looked at: most homes never have any.
            since = -1 if holds_any or version < known_version else known_version
            statement = f"SELECT 1 FROM record WHERE {self._of_kind}AND seq > :since LIMIT 1"  # noqa: S608
            holds_any = bool(self._rows(statement, since=since))
            self._holds_any = version, holds_any
        return holds_any

    def get(self, record_id: str) -> ValueT:
        """The record, superseded and softly forgotten ones too. `NotFound`, or `Unreadable`."""
        rows = self._selected("AND record_id = :id", id=record_id)
        if not rows:
            raise NotFound(self._noun, record_id)
        return self._value(rows[0])

    def many(self, record_ids: Iterable[str]) -> dict[str, ValueT]:
        """The records of these ids that exist, by id."""
        by_id: dict[str, ValueT] = {}
        for batch, names in ids_named(record_ids):
            rows = self._selected(f"AND record_id IN ({names})", **batch)
            by_id.update(readable(rows, lambda row: (row[0], self._read(row))))
        return by_id

    def changed_since(self, since: int, limit: int = STEP) -> tuple[ValueT, ...]:
        """Records that changed after number `since`, in order of their numbers, at most `limit`.

        None only where there are no more: rows that cannot be read are passed over.
        """
        condition = "AND seq > :since ORDER BY seq LIMIT :limit"
        while rows := self._selected(condition, since=since, limit=limit):
            if records := tuple(readable(rows, self._read)):
                return records
            since = rows[-1][_SEQ]
        return ()

    def events(self, record_id: str) -> tuple[RecordEvent, ...]:
        """Every time that the record was said or changed, in order of time."""
        rows = self._found(RECORD_EVENT, _EVENTS, id=record_id)
        return tuple(readable(rows, EVENT_MAPPING.value))

    def all_events(self) -> Iterator[RecordEvent]:
        """The events of every record of the namespace, of any kind."""
        statement = RECORD_EVENT.select()
        yield from readable(self._found(RECORD_EVENT, statement), EVENT_MAPPING.value)

    def tombstones_since(self, since: int, limit: int = NO_LIMIT) -> tuple[tuple[int, str], ...]:
        """(number, id) of records that were deleted for good after number `since`."""
        statement = _TOMBSTONES.format(kinds=self._named)
        return tuple((row[0], row[1]) for row in self._rows(statement, since=since, limit=limit))

    def told_since(self, since: int) -> tuple[str, ...]:
        """The ids of records of which only events or origins changed after number `since`."""
        statement = _TOLD.format(kinds=self._test)
        return tuple(str(row[0]) for row in self._rows(statement, since=since))

    def merged(self) -> dict[str, str]:
        """By the id of a record that was made one with another: the id of that other."""
        rows = self._rows(_TOMBSTONES.format(kinds=f"'{MERGED}'"), since=0, limit=NO_LIMIT)
        return dict(str(row[1]).split(" ", 1) for row in rows)

    def _read(self, row: Sequence[Any]) -> ValueT:
        """What one of many rows stands for. `Unreadable`: it will be passed over."""
        return self._value(row)

    def _selected(self, where: str, **values: str | int | None) -> Rows:
        """Whole rows of these kinds, opened."""
        return self._found(RECORD, self._all + where, **values)


class Records(RecordReader[MemoryRecord]):
    """The memories of one namespace, or its records of other `kinds`, read as memories.

    Every read sees every write acknowledged by any process.
    """

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer = CLEAR,
        *,
        kinds: tuple[str, ...] = (MEMORY,),
    ) -> None:
        super().__init__(
            truth, namespace, sealer, kinds=kinds, noun="memory", value=RECORD_MAPPING.value
        )
        self._passed: set[str] = set()
        self._lineages: tuple[int, dict[tuple[str, frozenset[str]], frozenset[str]]] = (-1, {})

    def unreadable(self) -> tuple[str, ...]:
        """The ids of rows that were passed over, and still cannot be read."""
        waiting = tuple(self._passed)
        if waiting:
            self._passed -= self.many(waiting).keys()
            existing: set[str] = set()
            for batch, names in ids_named(waiting):
                statement = self._all + f"AND record_id IN ({names})"
                existing |= {row[0] for row in self._rows(statement, **batch)}
            self._passed &= existing
        return tuple(sorted(self._passed))

    def resolved(self, keep: Filter) -> Filter:
        """The filter with the ids of its lineages looked up."""
        return keep.resolved(self._lineage)

    def _lineage(self, operator: str, ids: frozenset[str]) -> frozenset[str]:
        """The relatives of these memories, in history too; "eq" has both ways and themselves."""
        version, (known_version, lineages) = self.version(), self._lineages
        if version != known_version or len(lineages) >= _LINEAGES_KEPT:
            lineages = {}
            self._lineages = (version, lineages)
        if (operator, ids) not in lineages:
            ways = (operator,) if operator in ONE_WAY else ONE_WAY
            relatives: frozenset[str] = frozenset()
            for way in ways:
                statement = _RELATIVES[way].format(own=self._of_kind)
                for record_id in sorted(ids):
                    rows = self._rows(statement, id=record_id)
                    # Of a circle, which no writer makes, itself would be among them.
                    relatives |= {str(row[0]) for row in rows} - {record_id}
            lineages[operator, ids] = relatives if operator in ONE_WAY else relatives | ids
        return lineages[operator, ids]

    def with_same_key(self, key: str) -> tuple[MemoryRecord, ...]:
        """The records of this identity, in no order."""
        stored_key = self._lookup("same_key", key)
        return tuple(self._records("AND same_key = :same_key", same_key=stored_key))

    def current(self, path: str) -> MemoryRecord | None:
        """The present value of a path."""
        living = [r for r in self.history(path) if r.valid_to is None and not r.forgotten]
        return living[-1] if living else None

    def history(self, path: str) -> tuple[MemoryRecord, ...]:
        """Every value that the path had, oldest first, softly forgotten ones among them.

        Those of a path that differs only in case, where this one had none.
        """
        key = self._lookup("path_key", path_key_of(path))
        stored_records = list(self._records("AND path_key = :path_key", path_key=key))
        matches = [record for record in stored_records if is_at(record, path)]
        matches = matches or [record for record in stored_records if is_near(record, path)]
        return tuple(
            # Databases differ in where an open end sorts.
            sorted(matches, key=lambda r: (r.valid_from, r.valid_to is None, r.valid_to or 0, r.id))
        )

    def find(self, record_id: str) -> MemoryRecord | None:
        """The memory of this id, if there is one."""
        return self.many([record_id]).get(record_id)

    def marked(self, core: int, limit: int = NO_LIMIT) -> Sequence[MemoryRecord]:
        """The memories with this `core`, the last changed first.

        Of rules only those that hold; pinned ones that were replaced lead to what replaced them.
        """
        condition = "" if core == IN_CORE else CURRENT
        condition = f"AND core = :core {condition}ORDER BY seq DESC LIMIT :limit"
        return self._records(condition, core=core, limit=limit)

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
        later page does not look. `InvalidInput` for a cursor of another kind.
        """
        keep = None if keep is None else self.resolved(keep)
        records: list[MemoryRecord] = []
        for record in self._backwards(_read_cursor(cursor), history):
            is_expired = (
                now is not None and record.expires_at is not None and record.expires_at <= now
            )
            if is_expired or (keep is not None and not keep.matches(as_mapping(record))):
                continue
            if len(records) == limit:
                cursor_text = base64.urlsafe_b64encode(f"r{records[-1].seq}".encode()).decode()
                return Page(tuple(records), cursor_text.rstrip("="))
            records.append(record)
        return Page(tuple(records))

    def links(
        self, record_ids: Iterable[str], kinds: Collection[str] = CLOSENESS
    ) -> tuple[RecordLink, ...]:
        """The links of `kinds` that have one of these ids at either end, the closest first."""
        links: set[RecordLink] = set()
        kind_list = _quoted(kinds)
        for batch, names in ids_named(record_ids):
            rows = self._rows(_LINKS.format(ids=names, kinds=kind_list), **batch)
            links.update(map(LINK_MAPPING.value, rows))
        return tuple(sorted(links, key=lambda k: (-k.strength, k.record_id, k.other_id, k.kind)))

    def links_of(self, kinds: Sequence[str], before: int = NO_LIMIT) -> tuple[LinkRow, ...]:
        """At most `STEP` links of `kinds` that came before number `before`, the last first."""
        kind_list = ", ".join(f":kind{at}" for at in range(len(kinds)))
        parameters = {f"kind{at}": kind for at, kind in enumerate(kinds)}
        condition = f"AND kind IN ({kind_list}) AND seq < :before ORDER BY seq DESC LIMIT {STEP}"
        rows = self._rows(LINK.select() + condition, before=before, **parameters)
        return tuple((LINK_MAPPING.value(row), row[_LINK_SEQ]) for row in rows)

    def links_since(self, since: int, kinds: Collection[str]) -> tuple[RecordLink, ...]:
        """The links of `kinds` that were written after number `since`."""
        condition = f"AND seq > :since AND kind IN ({_quoted(kinds)})"
        return tuple(map(LINK_MAPPING.value, self._rows(LINK.select() + condition, since=since)))

    def with_text(self, text: str) -> tuple[str, ...]:
        """The ids of all records, in history too, with exactly this text."""
        if not self.sealer.sealed:
            statement = f"SELECT record_id FROM record WHERE {self._of_kind}"  # noqa: S608 - ours
            return tuple(
                row[0]
                for row in self._rows(statement + "AND text = :text ORDER BY record_id", text=text)
            )
        # No two sealed forms of a text are the same, but they are of the same length.
        row = {"namespace": self.namespace, "record_id": "", "text": text}
        length = len(self.sealer.seal_row("record", row)["text"])
        statement = self._all + "AND LENGTH(text) = :length ORDER BY record_id"
        rows = self._opened(RECORD, self._rows(statement, length=length), only=())
        return tuple(row[0] for row in rows if row[_TEXT] == text)

    def payloads(self) -> Iterator[tuple[str, str]]:
        """(record id, payload as JSON) of every memory that has one, in no order."""
        if self.sealer.sealed:
            rows = self.columns("payload")
        else:
            # By an index of these alone, for the sake of `seq`: few memories have one.
            statement = f"SELECT record_id, payload FROM record WHERE {self._of_kind}"  # noqa: S608
            rows = self._rows(statement + "AND payload IS NOT NULL AND seq > 0")
        for record_id, payload in rows:
            if payload:
                has_escapes = "\\" in payload
                plain = (
                    json.dumps(json.loads(payload), ensure_ascii=False) if has_escapes else payload
                )
                yield record_id, plain

    def columns(self, *names: str) -> Sequence[tuple[Any, ...]]:
        """(record id, these columns as they are stored) of every memory, in no order."""
        if not self.sealer.sealed:
            columns = ("record_id", *names)
            statement = f"SELECT {', '.join(columns)} FROM record WHERE {self._of_kind}"  # noqa: S608
            return self._opened(RECORD, self._rows(statement), columns)
        # Whole rows: a column that was emptied by another program must not look like an empty one.
        positions = [0, *(RECORD.names.index(name) for name in names)]
        rows = self._opened(RECORD, self._rows(self._all), only=names)
        return [tuple(row[position] for position in positions) for row in rows]

    def short_rows(self, since: int = -1) -> Iterator[Rows]:
        """Of memories that changed after `since` the columns that time and status are judged by.

        (record_id, seq, type, created_at, last_reinforced, reinforced, valid_from, valid_until,
        expires_at, forgotten_at), all of them clear; in order of changes, some at a time. One that
        changes meanwhile may come twice, the later one as it is then.
        """
        statement = RECORD.select(_SHORT) + f"AND {self._test} AND seq > :since "
        statement += f"ORDER BY seq LIMIT {_SHORT_STEP}"
        while rows := self._rows(statement, since=since):
            yield rows
            since = rows[-1][1]

    def _backwards(self, before: int, history: bool) -> Iterator[MemoryRecord]:
        # The first page is usually a small one, and answered by few rows.
        step, current = 64, "" if history else CURRENT
        condition = f"AND seq < :before {current}ORDER BY seq DESC LIMIT :limit"
        while rows := self._selected(condition, before=before, limit=step):
            yield from readable(rows, self._read)
            before, step = rows[-1][_SEQ], STEP

    def _records(self, where: str, **values: str | int | None) -> Sequence[MemoryRecord]:
        return list(readable(self._selected(where, **values), self._read))

    def _read(self, row: Sequence[Any]) -> MemoryRecord:
        try:
            return self._value(row)
        except Unreadable as error:
            self._passed.add(error.id)
            raise


def _quoted(kinds: Iterable[str]) -> str:
    """Kinds as SQL names them: names of ours, never a caller's words."""
    return "'" + "', '".join(kinds) + "'"


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return NO_LIMIT
    try:
        padded_cursor = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded_cursor, altchars=b"-_", validate=True).decode("ascii")
        if not text.startswith("r"):
            raise ValueError(text)
        return int(text[1:])
    except (ValueError, binascii.Error, AttributeError) as error:
        raise InvalidInput("cursor", cursor, "expected a cursor from an earlier page") from error
