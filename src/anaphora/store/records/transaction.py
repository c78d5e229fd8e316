"""One change to records: what it needs is read in bulk, what it did is written in bulk.

`RecordTransaction` holds the records that the change touches and decides nothing about them:
`rules` says what restating and superseding mean, `forgetting` what forgetting does. What is held
is clear. Imports SQLAlchemy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from anaphora.errors import Unreadable
from anaphora.store.audit import ToldChanges, is_kept
from anaphora.store.codecs import from_micros, readable, to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.engine import Write
from anaphora.store.db.tables import LINK, RECORD, RECORD_EVENT, SYNC_STATE, TOMBSTONE, VECTOR
from anaphora.store.hashing import digest
from anaphora.store.namespace import NamespaceTransaction
from anaphora.store.records.rows import (
    CLOSENESS,
    EVENT_MAPPING,
    IMPORTED,
    LINK_MAPPING,
    MEMORY,
    MERGED,
    RECORD_MAPPING,
    RecordEvent,
    RecordLink,
    is_at,
    is_near,
    mended_row,
    path_key_of,
)
from anaphora.store.records.vectors import VectorRow, VectorTransaction
from anaphora.store.records.written import WrittenRecords
from anaphora.values.memories import MemoryRecord

_LAST_TIME: Final = datetime(9999, 12, 30, tzinfo=UTC)


@dataclass(slots=True)
class _Held:
    """A record that the change knows: as it stands now, and whether that is in the table."""

    record: MemoryRecord
    same_key: str
    forgotten_at: datetime | None = None
    stored: bool = True
    dirty: bool = False


class RecordTransaction(NamespaceTransaction):
    """The records that one write transaction touches; `added` are the ids of new ones.

    Those of one kind: to a change of memories, notes of a project are not there.
    """

    def __init__(self, write: Write, sealer: Sealer = CLEAR, kind: str = MEMORY) -> None:
        super().__init__(write, sealer)
        self._kind = kind
        self._held: dict[str, _Held] = {}
        self._events: list[RecordEvent] = []
        # Keys whose records are all held already: asking the table again would find nothing new.
        self._known_same: set[str] = set()
        self._known_paths: set[str] = set()
        self._missing: set[str] = set()
        self._mended: list[str] = []
        self._written: dict[str, MemoryRecord] = {}
        self._vectors: dict[str, bytes] = {}
        self._embedder = ""
        # False where something was done that `written` does not tell.
        self._whole = True
        self._told = ToldChanges(kind) if is_kept(write.audit) else None
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
        self._fetch("path_key", set(map(path_key_of, names)))
        self._known_paths |= names
        wanted = {one for one in ids if one not in self._held} - self._missing
        self._fetch("record_id", wanted)
        self._missing |= {one for one in wanted if one not in self._held}

    def presume_absent(self, same_key: str, seen: int) -> None:
        """Of this identity no record was there at the number `seen`: it is not looked for again,
        unless anything was written since."""
        if self.write.before == seen:
            self._known_same.add(same_key)

    @property
    def written(self) -> WrittenRecords | None:
        """What the change has written, once it is finished; None where that is not all of it."""
        if not self._whole:
            return None
        numbers = self.write.before, self.write.seq
        records = tuple(sorted(self._written.values(), key=lambda one: one.seq))
        return WrittenRecords(*numbers, records, self._embedder, tuple(self._vectors.items()))

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

    def marked(self, core: int) -> Sequence[MemoryRecord]:
        """The records with this `core`, in no order."""
        self.flush()
        ids = [row[0] for row in self._rows(RECORD, ("record_id",), kind=self._kind, core=core)]
        self.load(ids=ids)
        return [self._held[one].record for one in ids if one in self._held]

    def versions(self, path: str) -> Sequence[MemoryRecord]:
        """The values of this path that are not forgotten, oldest first."""
        self.load(paths=(path,))
        return self._living(held for held in self._held.values() if is_at(held.record, path))

    def near(self, path: str) -> Sequence[MemoryRecord]:
        """The values, not forgotten, of paths that differ from this one in nothing but case."""
        self.load(paths=(path,))
        return self._living(held for held in self._held.values() if is_near(held.record, path))

    def all_like(self, same_key: str, path: str | None) -> Sequence[MemoryRecord]:
        """The values of this path, or without one the records of this identity, forgotten too."""
        if path is None:
            self.load(same_keys=(same_key,))
            return [held.record for held in self._held.values() if held.same_key == same_key]
        self.load(paths=(path,))
        return [held.record for held in self._held.values() if is_at(held.record, path)]

    def latest_seen(self) -> datetime | None:
        """How far the clocks are of which sync has seen a change; None where nothing is synced."""
        for row in self._found_rows(SYNC_STATE, name="clock"):
            micros = int(json.loads(row["value"])["value"][0])
            return from_micros(min(micros, to_micros(_LAST_TIME)))
        return None

    def was_imported(self, source: str) -> bool:
        """Whether something that was imported from this source was forgotten for good."""
        owner = self._import_key(source)
        return bool(self._rows(TOMBSTONE, ("seq",), kind=IMPORTED, owner_id=owner))

    def _import_key(self, source: str) -> str:
        return self._lookup("identity_key", digest("imported", source))

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
        if self._told is not None:
            self._told.tell("hidden", [record_id])

    def reveal(self, record_id: str) -> None:
        """Take the mark of a softly forgotten record away."""
        self._held[record_id].forgotten_at = None
        self.change(record_id, forgotten=False)
        if self._told is not None:
            self._told.tell("restored", [record_id])

    def tell(self, event: RecordEvent) -> None:
        """Add to a record's events."""
        self._events.append(event)

    def events(self, record_id: str) -> list[RecordEvent]:
        """The events of a record, in order of time."""
        self.flush()
        found = self._found(RECORD_EVENT, record_id=record_id)
        events = readable(found, EVENT_MAPPING.value)
        return sorted(events, key=lambda event: (event.at, event.seq))

    def untell(self, events: Iterable[RecordEvent]) -> None:
        """Take events away, as `events` gave them."""
        for event in events:
            self._delete(RECORD_EVENT, record_id=event.record_id, seq=event.seq)

    def move_events(self, events: Iterable[RecordEvent], record_id: str) -> None:
        """Give events of another record, as `events` gave them, to this one."""
        self.flush()
        # Where it goes is a part of its key, and what is sealed is bound to that.
        for event in events:
            self._delete(RECORD_EVENT, record_id=event.record_id, seq=event.seq)
            moved = EVENT_MAPPING.row(replace(event, record_id=record_id))
            self._execute_insert(RECORD_EVENT, [self._stored(RECORD_EVENT, moved)])

    def children(self, record_ids: Iterable[str]) -> set[str]:
        """The ids of records that were derived from these."""
        self.flush()
        parents = list(dict.fromkeys(record_ids))
        found = self._rows(RECORD, ("record_id",), kind=self._kind, parent=parents)
        return {row[0] for row in found}

    def neighbours(self, record_id: str) -> Sequence[MemoryRecord]:
        """The records that name this one as what they supersede, or as what superseded them."""
        self.flush()
        # Not one statement with OR: SQLite read every record of the namespace for that.
        self._take(self._rows(RECORD, kind=self._kind, supersedes=record_id))
        self._take(self._rows(RECORD, kind=self._kind, superseded_by=record_id))
        return [
            held.record
            for held in self._held.values()
            if record_id in (held.record.supersedes, held.record.superseded_by)
        ]

    def linked(
        self, record_ids: Iterable[str], kinds: Collection[str] = CLOSENESS
    ) -> list[RecordLink]:
        """The links of `kinds` that have one of these ids at either end."""
        ids = list(record_ids)
        # Not one statement with OR: SQLite read every link of the namespace for that.
        rows = [row for end in ("record_id", "other_id") for row in self._rows(LINK, **{end: ids})]
        found = dict.fromkeys(map(LINK_MAPPING.value, rows))
        return [link for link in found if link.kind in kinds]

    def join(self, links: Iterable[RecordLink]) -> None:
        """Write links of held records that are not linked yet."""
        self.flush()
        self._insert(LINK, [LINK_MAPPING.row(one) for one in links])

    def turn(self, link: RecordLink, kind: str) -> None:
        """Make a link that is there one of another kind."""
        self._delete(LINK, record_id=link.record_id, other_id=link.other_id, kind=link.kind)
        self.join([replace(link, kind=kind)])

    def keep_vectors(self, embedder: str, rows: Sequence[VectorRow]) -> None:
        """Write vectors of records, in place of what they had; those of no record are left out."""
        self.flush()
        ids = dict.fromkeys(row.record_id for row in rows)
        fresh = self.added.issuperset(ids)
        kept = VectorTransaction(self.write, self.sealer).put(embedder, rows, fresh=fresh)
        self._whole &= kept == len(ids) and self._embedder in ("", embedder)
        self._embedder = embedder
        self._vectors.update(dict.fromkeys(ids, b""))
        for row in rows:
            self._vectors[row.record_id] += row.data

    def drop_vectors(self, record_ids: Iterable[str]) -> None:
        """Delete the vectors of records whose words are others now."""
        self.flush()
        self._whole = False
        self._delete(VECTOR, record_id=list(record_ids))

    def erase(self, record_ids: Iterable[str]) -> int:
        """Delete records with everything that hangs on them, and leave their tombstones."""
        self.flush()
        self._whole = False
        gone = list(dict.fromkeys(record_ids))
        # Where they were imported from stays known, so that the next import leaves them out.
        told = (event for one in gone for event in self.events(one))
        origins = {e.source for e in told if e.source is not None and e.details.get(IMPORTED)}
        self._bury(IMPORTED, map(self._import_key, sorted(origins)))
        count = self._delete(RECORD, kind=self._kind, record_id=gone)
        self._bury(self._kind, gone)
        if self._told is not None:
            self._told.tell("forgotten", gone)
        for one in gone:
            self._held.pop(one, None)
            self._missing.add(one)
        return count

    def note_merged(self, into: Mapping[str, str]) -> None:
        """Note with which other records these, which are erased, were made one."""
        self._bury(MERGED, (f"{one} {other}" for one, other in into.items() if one != other))

    def flush(self) -> None:
        """Write what was added, changed and told. Numbers go in the order of the touching."""
        dirty = [held for held in self._held.values() if held.dirty]
        new: list[dict[str, Any]] = []
        old: list[dict[str, Any]] = []
        for held, seq in zip(dirty, self.write.take(len(dirty)), strict=True):
            held.record = replace(held.record, seq=seq)
            row = RECORD_MAPPING.row(
                held.record,
                kind=self._kind,
                same_key=held.same_key,
                forgotten_at=to_micros(held.forgotten_at),
            )
            (old if held.stored else new).append(self._stored(RECORD, row))
            if self._told is not None:
                self._told.tell("changed" if held.stored else "remembered", [held.record.id])
            self._written[held.record.id] = held.record
            held.stored, held.dirty = True, False
        if new:
            self._execute_insert(RECORD, new)
        if old:
            self._execute_update(RECORD, old, RECORD.names)
        self._insert(RECORD_EVENT, [EVENT_MAPPING.row(event) for event in self._events])
        self._events = []
        self._show_vectors()

    def finish(self) -> None:
        """Write what is left, and what an audit trail is told of this change."""
        self.flush()
        if self._told is not None:
            self._told.add_to(self.write, self.sealer)

    def _show_vectors(self) -> None:
        """Who has passed a record over has passed its vectors over, too: they come once more."""
        mended, self._mended = self._mended, []
        self._whole &= not mended
        for record_id in mended:
            self._renumber(VECTOR, record_id=record_id)

    def _fetch(self, column: str, values: Collection[str]) -> None:
        if not values:
            return
        if column != "record_id":
            values = [self._lookup(column, value) for value in values]
        self._take(self._rows(RECORD, kind=self._kind, **{column: list(values)}))

    def _take(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in self._opened(RECORD, [tuple(row) for row in rows]):
            # What the change has touched already is newer than what the table holds.
            if row[0] not in self._held:
                self._held[row[0]] = self._holding(row)

    def _holding(self, row: Sequence[Any]) -> _Held:
        """What a row stands for; one that makes no sense is mended by this change."""
        was: dict[str, Any] = {}
        try:
            record = RECORD_MAPPING.value(row)
        except Unreadable:
            row, was = mended_row(row)
            self._mended.append(row[0])
            record = RECORD_MAPPING.value(row)
            at = record.last_reinforced
            self.tell(RecordEvent(record.id, "updated", at, details={"was": was}))
        of = dict(zip(RECORD.names, row, strict=True))
        return _Held(record, of["same_key"], from_micros(of["forgotten_at"]), dirty=bool(was))

    @staticmethod
    def _living(held: Iterable[_Held]) -> Sequence[MemoryRecord]:
        return sorted(
            (one.record for one in held if one.forgotten_at is None),
            key=lambda r: (r.valid_from, r.valid_to is None, r.valid_to or r.valid_from, r.id),
        )
