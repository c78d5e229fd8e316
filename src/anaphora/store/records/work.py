"""One change to records: what it needs is read in bulk, what it did is written in bulk.

`RecordTransaction` holds the records that the change touches and decides nothing about them:
`rules` says what restating and superseding mean, `forgetting` what forgetting does. What is held
is clear; in a sealed home rows are sealed and opened on their way. Imports SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, or_, select, update

from anaphora.errors import Unreadable
from anaphora.store.codecs import from_micros, readable
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.db.engine import Write
from anaphora.store.db.schema import link, record, record_event, tombstone, vector
from anaphora.store.records.mending import mended_row
from anaphora.store.records.rows import (
    COLUMNS,
    EVENT_COLUMNS,
    MEMORY,
    RecordEvent,
    RecordLink,
    event_of,
    event_row,
    path_key_of,
    record_of,
    record_row,
)
from anaphora.values.memories import MemoryRecord

# PostgreSQL and SQLite both take more, but plans of a bounded size can be kept.
_AT_ONCE = 256

_RECORD = [record.c[name] for name in COLUMNS]
_EVENT = [record_event.c[name] for name in EVENT_COLUMNS]
# Made once: building a statement takes as long as running it.
_FIND_BY = {
    name: select(*_RECORD).where(
        record.c.namespace == bindparam("namespace"),
        record.c.kind == bindparam("kind"),
        record.c[name].in_(bindparam("some", expanding=True)),
    )
    for name in ("record_id", "same_key", "path_key")
}
# Not one statement with OR: SQLite read every link of the namespace for that.
_LINKS_AT = [
    select(link.c.record_id, link.c.other_id, link.c.kind, link.c.strength).where(
        link.c.namespace == bindparam("namespace"), end.in_(bindparam("some", expanding=True))
    )
    for end in (link.c.record_id, link.c.other_id)
]
_INSERT = {table.name: table.insert() for table in (record, record_event, link, tombstone)}
_UPDATED = [name for name in COLUMNS if name not in ("record_id", "kind")]
_UPDATE = (
    update(record)
    .where(record.c.namespace == bindparam("here"), record.c.record_id == bindparam("of"))
    .values({name: bindparam(f"new_{name}") for name in _UPDATED})
)


@dataclass(slots=True)
class _Held:
    """A record that the change knows: as it stands now, and whether that is in the table."""

    record: MemoryRecord
    same_key: str
    forgotten_at: datetime | None = None
    stored: bool = True
    dirty: bool = False


class RecordTransaction:
    """The records that one write transaction touches; `added` are the ids of new ones.

    Those of one kind: to a change of memories, notes of a project are not there.
    """

    def __init__(self, write: Write, sealer: Sealer = CLEAR, kind: str = MEMORY) -> None:
        self.write = write
        self._sealer = sealer
        self._kind = kind
        self._held: dict[str, _Held] = {}
        self._events: list[RecordEvent] = []
        # Keys whose records are all held already: asking the table again would find nothing new.
        self._known_same: set[str] = set()
        self._known_paths: set[str] = set()
        self._missing: set[str] = set()
        self._mended: list[str] = []
        self.added: set[str] = set()

    def load(
        self,
        *,
        ids: Iterable[str] = (),
        same_keys: Iterable[str] = (),
        paths: Iterable[str] = (),
    ) -> None:
        """Read what the change will ask for, in few statements however many it asks for."""
        keys = set(same_keys) - self._known_same
        self._fetch("same_key", keys)
        self._known_same |= keys
        names = set(paths) - self._known_paths
        self._fetch("path_key", {str(path_key_of(path)) for path in names})
        self._known_paths |= names
        wanted = {one for one in ids if one not in self._held} - self._missing
        self._fetch("record_id", wanted)
        self._missing |= {one for one in wanted if one not in self._held}

    def find(self, record_id: str) -> MemoryRecord | None:
        """The record of this id, if there is one."""
        self.load(ids=(record_id,))
        held = self._held.get(record_id)
        return held.record if held else None

    def same_key(self, record_id: str) -> str:
        """The identity of a held record."""
        return self._held[record_id].same_key

    def having(self, same_key: str) -> Sequence[MemoryRecord]:
        """The records of this identity that are not forgotten, oldest first."""
        self.load(same_keys=(same_key,))
        return self._living(held for held in self._held.values() if held.same_key == same_key)

    def versions(self, path: str) -> Sequence[MemoryRecord]:
        """The values of this path that are not forgotten, oldest first."""
        self.load(paths=(path,))
        return self._living(held for held in self._held.values() if held.record.path == path)

    def add(self, new: MemoryRecord, same_key: str) -> None:
        """Take in a record that was not there."""
        self._held[new.id] = _Held(new, same_key, stored=False, dirty=True)
        self._missing.discard(new.id)
        self.added.add(new.id)

    def change(self, record_id: str, *, same_key: str | None = None, **fields: Any) -> MemoryRecord:
        """Replace fields of a held record."""
        held = self._held[record_id]
        held.record = replace(held.record, **fields)
        held.same_key = held.same_key if same_key is None else same_key
        held.dirty = True
        return held.record

    def hide(self, record_id: str, at: datetime) -> None:
        """Mark a held record as softly forgotten."""
        self._held[record_id].forgotten_at = at
        self.change(record_id, forgotten=True)

    def tell(self, event: RecordEvent) -> None:
        """Add to a record's events."""
        self._events.append(event)

    def events(self, record_id: str) -> list[RecordEvent]:
        """The events of a record, in order of time."""
        self.flush()
        found = self._select(_EVENT, record_event, record_event.c.record_id == record_id)
        opened = self._opened("record_event", EVENT_COLUMNS, found)
        return sorted(readable(opened, event_of), key=lambda event: (event.at, event.seq))

    def move_events(self, events: Iterable[RecordEvent], record_id: str) -> None:
        """Give events of another record, as `events` gave them, to this one."""
        self.flush()
        for event in events:
            statement = update(record_event).where(
                record_event.c.namespace == self.write.namespace,
                record_event.c.record_id == event.record_id,
                record_event.c.seq == event.seq,
            )
            # What is sealed is bound to the record: it must be sealed anew.
            moved = self._sealed("record_event", event_row(replace(event, record_id=record_id)))
            values = {name: moved[name] for name in ("record_id", "tags", "origin")}
            self.write.connection.execute(statement.values(values))

    def children(self, record_ids: Iterable[str]) -> set[str]:
        """The ids of records that were derived from these."""
        self.flush()
        found: set[str] = set()
        for some in _portions(record_ids):
            here = and_(record.c.kind == self._kind, record.c.parent.in_(some))
            rows = self._select([record.c.record_id], record, here)
            found.update(row[0] for row in rows)
        return found

    def neighbours(self, record_id: str) -> Sequence[MemoryRecord]:
        """The records that name this one as what they supersede, or as what superseded them."""
        self.flush()
        here = or_(record.c.supersedes == record_id, record.c.superseded_by == record_id)
        here = and_(record.c.kind == self._kind, here)
        self._take(self._select(_RECORD, record, here))
        return [
            held.record
            for held in self._held.values()
            if record_id in (held.record.supersedes, held.record.superseded_by)
        ]

    def linked(self, record_ids: Iterable[str]) -> list[RecordLink]:
        """The links that have one of these ids at either end."""
        found: dict[tuple[str, str], RecordLink] = {}
        for some in _portions(record_ids):
            given = {"namespace": self.write.namespace, "some": some}
            for statement in _LINKS_AT:
                for row in self.write.connection.execute(statement, given):
                    found[row[0], row[1]] = RecordLink(*row)
        return list(found.values())

    def join(self, links: Iterable[RecordLink]) -> None:
        """Write links of held records that are not linked yet."""
        self.flush()
        self._insert(
            link,
            [
                {
                    "record_id": one.record_id,
                    "other_id": one.other_id,
                    "kind": one.kind,
                    "strength": one.strength,
                }
                for one in links
            ],
        )

    def erase(self, record_ids: Iterable[str]) -> int:
        """Delete records with everything that hangs on them, and leave their tombstones."""
        self.flush()
        gone = list(dict.fromkeys(record_ids))
        count = 0
        for some in _portions(gone):
            here = and_(
                record.c.namespace == self.write.namespace,
                record.c.kind == self._kind,
                record.c.record_id.in_(some),
            )
            count += self.write.connection.execute(delete(record).where(here)).rowcount
        self._insert(tombstone, [{"kind": self._kind, "owner_id": one} for one in gone])
        for one in gone:
            self._held.pop(one, None)
            self._missing.add(one)
        return count

    def flush(self) -> None:
        """Write what was added, changed and told. Numbers go in the order of the touching."""
        dirty = [held for held in self._held.values() if held.dirty]
        new: list[dict[str, Any]] = []
        old: list[dict[str, Any]] = []
        for held, seq in zip(dirty, self.write.take(len(dirty)), strict=True):
            held.record = replace(held.record, seq=seq)
            row = record_row(held.record, held.same_key, held.forgotten_at)
            row = self._sealed("record", row | {"kind": self._kind})
            (old if held.stored else new).append(row)
            held.stored, held.dirty = True, False
        if new:
            self.write.connection.execute(_INSERT["record"], new)
        if old:
            self._update(old)
        self._insert(record_event, [_unnumbered(event) for event in self._events])
        self._events = []
        self._show_vectors()

    def _show_vectors(self) -> None:
        """Who has passed a record over has passed its vectors over, too: they come once more."""
        mended, self._mended = self._mended, []
        key = [column for column in vector.primary_key.columns if column.name != "namespace"]
        for record_id in mended:
            here = vector.c.record_id == record_id
            for values in self._select(key, vector, here):
                own = (column == value for column, value in zip(key, values, strict=True))
                statement = update(vector).where(vector.c.namespace == self.write.namespace, *own)
                self.write.connection.execute(statement.values(seq=self.write.take()[0]))

    def _update(self, rows: Sequence[dict[str, Any]]) -> None:
        here = self.write.namespace
        given = [
            {"here": here, "of": row["record_id"]} | {f"new_{name}": row[name] for name in _UPDATED}
            for row in rows
        ]
        self.write.connection.execute(_UPDATE, given)

    def _insert(self, table: Any, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        numbered = [
            self._sealed(table.name, row | {"seq": seq})
            for row, seq in zip(rows, self.write.take(len(rows)), strict=True)
        ]
        self.write.connection.execute(_INSERT[table.name], numbered)

    def _sealed(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        """The row as it is stored, with its namespace."""
        return self._sealer.seal_row(table, row | {"namespace": self.write.namespace})

    def _opened(
        self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> Sequence[tuple[Any, ...]]:
        found = [tuple(row) for row in rows]
        return open_rows(self._sealer, table, columns, self.write.namespace, found)

    def _fetch(self, column: str, values: Iterable[str]) -> None:
        if column != "record_id":
            here = self.write.namespace
            values = [self._sealer.lookup(column, here, value) for value in values]
        for some in _portions(values):
            given = {"namespace": self.write.namespace, "kind": self._kind, "some": some}
            self._take(self.write.connection.execute(_FIND_BY[column], given))

    def _take(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in self._opened("record", COLUMNS, rows):
            # What the change has touched already is newer than what the table holds.
            if row[0] not in self._held:
                self._held[row[0]] = self._holding(row)

    def _holding(self, row: Sequence[Any]) -> _Held:
        """What a row stands for; one that makes no sense is mended by this change."""
        was: dict[str, Any] = {}
        try:
            record = record_of(row)
        except Unreadable:
            row, was = mended_row(row)
            self._mended.append(row[0])
            record = record_of(row)
            at = record.last_reinforced
            self.tell(RecordEvent(record.id, "updated", at, details={"was": was}))
        forgotten_at = from_micros(row[COLUMNS.index("forgotten_at")])
        return _Held(record, row[-1], forgotten_at, dirty=bool(was))

    def _select(
        self, columns: Sequence[Any], table: Any, where: ColumnElement[bool]
    ) -> list[Sequence[Any]]:
        statement = select(*columns).where(table.c.namespace == self.write.namespace, where)
        return [tuple(row) for row in self.write.connection.execute(statement)]

    @staticmethod
    def _living(held: Iterable[_Held]) -> Sequence[MemoryRecord]:
        return sorted(
            (one.record for one in held if one.forgotten_at is None),
            key=lambda r: (r.valid_from, r.valid_to is None, r.valid_to or r.valid_from, r.id),
        )


def _unnumbered(event: RecordEvent) -> dict[str, Any]:
    row = event_row(event)
    del row["seq"]
    return row


def _portions(values: Iterable[str]) -> Iterator[list[str]]:
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]
