"""One change to records: what it needs is read in bulk, what it did is written in bulk.

`RecordTransaction` holds the records that the change touches and decides nothing about them:
`rules` says what restating and superseding mean, `forgetting` what forgetting does. What is tracked
is clear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from anaphora.errors import Unreadable
from anaphora.language.names import folded_path
from anaphora.store.codecs import from_micros, readable, to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.engine import Write
from anaphora.store.db.tables import LINK, RECORD, RECORD_EVENT, TOMBSTONE, VECTOR
from anaphora.store.extensions import CLOCKS, JOURNALS
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
from anaphora.store.verdicts import VerdictTransaction
from anaphora.values.memories import MemoryRecord


@dataclass(slots=True)
class _Tracked:
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
        self.kind = kind
        self._tracked: dict[str, _Tracked] = {}
        # Those of an identity or a folded path, and some that were.
        self._alike: dict[str, dict[str, None]] = {}
        self._events: list[RecordEvent] = []
        # By column, what all records are tracked of: another query would find nothing new.
        self._known: defaultdict[str, set[str]] = defaultdict(set)
        self._mended: list[str] = []
        self._written: dict[str, MemoryRecord] = {}
        self._vectors: dict[str, bytes] = {}
        self._embedder = ""
        self._links: list[RecordLink] = []
        # False where something was done that `written` does not tell.
        self._whole = True
        journals = (open_journal(write, kind, sealer) for open_journal in JOURNALS)
        self._journals = [journal for journal in journals if journal is not None]
        self.added: set[str] = set()

    def load(
        self,
        *,
        ids: Iterable[str] = (),
        same_keys: Iterable[str] = (),
        paths: Iterable[str] = (),
    ) -> None:
        """Read what the change will ask for, in few statements however many it asks for."""
        for column, asked in (("same_key", same_keys), ("path_key", paths), ("record_id", ids)):
            if keys := set(asked) - self._known[column]:
                self._known[column] |= keys
                self._fetch(column, keys)

    @property
    def written(self) -> WrittenRecords | None:
        """What the change has written, once it is finished; None where that is not all of it."""
        if not self._whole:
            return None
        numbers = self.write.before, self.write.seq
        records = tuple(sorted(self._written.values(), key=lambda one: one.seq))
        return WrittenRecords(
            *numbers, records, self._embedder, tuple(self._vectors.items()), tuple(self._links)
        )

    def find(self, record_id: str) -> MemoryRecord | None:
        """The record of this id, if there is one."""
        if record_id not in self._tracked:
            self.load(ids=(record_id,))
        tracked = self._tracked.get(record_id)
        return tracked.record if tracked else None

    def many(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The records of these ids that exist, by id."""
        ids = list(record_ids)
        self.load(ids=ids)
        return {
            record_id: self._tracked[record_id].record
            for record_id in ids
            if record_id in self._tracked
        }

    def same_key(self, record_id: str) -> str:
        """The identity of a tracked record."""
        return self._tracked[record_id].same_key

    def having(self, same_key: str) -> Sequence[MemoryRecord]:
        """The records of this identity that are not forgotten, oldest first."""
        self.load(same_keys=(same_key,))
        return self._living(t for t in self._find_alike(same_key) if t.same_key == same_key)

    def marked(self, core: int) -> Sequence[MemoryRecord]:
        """The records with this `core`, in no order."""
        self.flush()
        ids = [row[0] for row in self._rows(RECORD, ("record_id",), kind=self.kind, core=core)]
        self.load(ids=ids)
        return [self._tracked[record_id].record for record_id in ids if record_id in self._tracked]

    def versions(self, path: str) -> Sequence[MemoryRecord]:
        """The values of this path that are not forgotten, oldest first."""
        self.load(paths=(path,))
        alike = self._find_alike(folded_path(path))
        return self._living(tracked for tracked in alike if is_at(tracked.record, path))

    def near(self, path: str) -> Sequence[MemoryRecord]:
        """The values, not forgotten, of paths that differ from this one in nothing but case."""
        self.load(paths=(path,))
        alike = self._find_alike(folded_path(path))
        return self._living(tracked for tracked in alike if is_near(tracked.record, path))

    def all_like(self, same_key: str, path: str | None) -> Sequence[MemoryRecord]:
        """The values of this path, or without one the records of this identity, forgotten too."""
        if path is None:
            self.load(same_keys=(same_key,))
            return [t.record for t in self._find_alike(same_key) if t.same_key == same_key]
        self.load(paths=(path,))
        alike = self._find_alike(folded_path(path))
        return [tracked.record for tracked in alike if is_at(tracked.record, path)]

    def latest_seen(self) -> datetime | None:
        """The latest time of change that is known of other devices; None without any."""
        return max(filter(None, (latest(self) for latest in CLOCKS)), default=None)

    def was_imported(self, source: str) -> bool:
        """Whether something that was imported from this source was forgotten for good."""
        owner = self._import_key(source)
        return bool(self._rows(TOMBSTONE, ("seq",), kind=IMPORTED, owner_id=owner))

    def _import_key(self, source: str) -> str:
        return self._lookup("identity_key", digest("imported", source))

    def add(self, new: MemoryRecord, same_key: str) -> None:
        """Take in a record that was not there."""
        self._track(_Tracked(new, same_key, stored=False, dirty=True))
        self.added.add(new.id)

    def change(self, record_id: str, *, same_key: str | None = None, **fields: Any) -> MemoryRecord:
        """Replace fields of a tracked record."""
        tracked = self._tracked[record_id]
        tracked.record = replace(tracked.record, **fields)
        tracked.same_key = tracked.same_key if same_key is None else same_key
        tracked.dirty = True
        self._track(tracked)
        return tracked.record

    def hide(self, record_id: str, at: datetime) -> None:
        """Mark a tracked record as softly forgotten."""
        self._tracked[record_id].forgotten_at = at
        VerdictTransaction(self.write, self.sealer).drop([record_id])
        self.change(record_id, forgotten=True)
        for journal in self._journals:
            journal.note("hidden", [record_id])

    def reveal(self, record_id: str) -> None:
        """Take the mark of a softly forgotten record away."""
        self._tracked[record_id].forgotten_at = None
        self.change(record_id, forgotten=False)
        for journal in self._journals:
            journal.note("restored", [record_id])

    def tell(self, event: RecordEvent) -> None:
        """Add to a record's events."""
        self._events.append(event)

    def events(self, record_id: str) -> list[RecordEvent]:
        """The events of a record, in order of time."""
        self.flush()
        rows = self._found(RECORD_EVENT, record_id=record_id)
        events = readable(rows, EVENT_MAPPING.value)
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
            moved_row = EVENT_MAPPING.row(replace(event, record_id=record_id))
            self._execute_insert(RECORD_EVENT, [self._stored(RECORD_EVENT, moved_row)])

    def children(self, record_ids: Iterable[str]) -> set[str]:
        """The ids of records that were derived from these."""
        self.flush()
        parents = list(dict.fromkeys(record_ids))
        rows = self._rows(RECORD, ("record_id",), kind=self.kind, parent=parents)
        return {row[0] for row in rows}

    def neighbours(self, record_id: str) -> Sequence[MemoryRecord]:
        """The records that name this one as what they supersede, or as what superseded them."""
        self.flush()
        # Not one statement with OR: SQLite read every record of the namespace for that.
        self._take(self._rows(RECORD, kind=self.kind, supersedes=record_id))
        self._take(self._rows(RECORD, kind=self.kind, superseded_by=record_id))
        return [
            tracked.record
            for tracked in self._tracked.values()
            if record_id in (tracked.record.supersedes, tracked.record.superseded_by)
        ]

    def linked(
        self, record_ids: Iterable[str], kinds: Collection[str] = CLOSENESS
    ) -> list[RecordLink]:
        """The links of `kinds` that have one of these ids at either end."""
        ids = list(record_ids)
        # Not one statement with OR: SQLite read every link of the namespace for that.
        rows = [row for end in ("record_id", "other_id") for row in self._rows(LINK, **{end: ids})]
        links = dict.fromkeys(map(LINK_MAPPING.value, rows))
        return [link for link in links if link.kind in kinds]

    def join(self, links: Collection[RecordLink]) -> None:
        """Write links of tracked records that are not linked yet."""
        self.flush()
        self._links += links
        self._insert(LINK, [LINK_MAPPING.row(link) for link in links])

    def turn(self, link: RecordLink, kind: str) -> None:
        """Make a link that is there one of another kind."""
        self._delete(LINK, record_id=link.record_id, other_id=link.other_id, kind=link.kind)
        self.join([replace(link, kind=kind)])

    def keep_vectors(self, embedder: str, rows: Sequence[VectorRow]) -> None:
        """Write vectors of records, in place of what they had; those of no record are left out."""
        self.flush()
        ids = dict.fromkeys(row.record_id for row in rows)
        are_new = self.added.issuperset(ids)
        count = VectorTransaction(self.write, self.sealer).put(embedder, rows, fresh=are_new)
        self._whole &= count == len(ids) and self._embedder in ("", embedder)
        self._embedder = embedder
        self._vectors.update(dict.fromkeys(ids, b""))
        for row in rows:
            self._vectors[row.record_id] += row.data

    def drop_vectors(self, record_ids: Iterable[str]) -> None:
        """Delete the vectors of records with other words now."""
        self.flush()
        self._whole = False
        self._delete(VECTOR, record_id=list(record_ids))

    def erase(self, record_ids: Iterable[str]) -> int:
        """Delete records with everything that hangs on them, and leave their tombstones."""
        self.flush()
        self._whole = False
        ids = list(dict.fromkeys(record_ids))
        # Where they were imported from stays known, so that the next import leaves them out.
        events = (event for record_id in ids for event in self.events(record_id))
        origins = {e.source for e in events if e.source is not None and e.details.get(IMPORTED)}
        self._bury(IMPORTED, map(self._import_key, sorted(origins)))
        count = self._delete(RECORD, kind=self.kind, record_id=ids)
        VerdictTransaction(self.write, self.sealer).drop(ids)
        self._bury(self.kind, ids)
        for journal in self._journals:
            journal.note("forgotten", ids)
        for record_id in ids:
            self._tracked.pop(record_id, None)
        return count

    def note_merged(self, into: Mapping[str, str]) -> None:
        """Note with which other records these, which are erased, were made one."""
        self._bury(
            MERGED,
            (
                f"{merged_id} {kept_id}"
                for merged_id, kept_id in into.items()
                if merged_id != kept_id
            ),
        )

    def flush(self) -> None:
        """Write what was added, changed and told. Numbers go in the order of the touching."""
        dirty = [tracked for tracked in self._tracked.values() if tracked.dirty]
        new_rows: list[dict[str, Any]] = []
        old_rows: list[dict[str, Any]] = []
        for tracked, seq in zip(dirty, self.write.take(len(dirty)), strict=True):
            tracked.record = replace(tracked.record, seq=seq)
            row = RECORD_MAPPING.row(
                tracked.record,
                kind=self.kind,
                same_key=tracked.same_key,
                forgotten_at=to_micros(tracked.forgotten_at),
            )
            (old_rows if tracked.stored else new_rows).append(self._stored(RECORD, row))
            for journal in self._journals:
                journal.note("changed" if tracked.stored else "remembered", [tracked.record.id])
            self._written[tracked.record.id] = tracked.record
            tracked.stored, tracked.dirty = True, False
        if new_rows:
            self._execute_insert(RECORD, new_rows)
        if old_rows:
            self._execute_update(RECORD, old_rows, RECORD.names)
        self._insert(RECORD_EVENT, [EVENT_MAPPING.row(event) for event in self._events])
        self._events = []
        mended_rows, self._mended = self._mended, []
        self._whole &= not mended_rows
        # A reader that passed a record over has passed its vectors and links over, too: they come
        # once more.
        for record_id in mended_rows:
            for table, end in ((VECTOR, "record_id"), (LINK, "record_id"), (LINK, "other_id")):
                self._renumber(table, **{end: record_id})

    def finish(self) -> None:
        """Write what is left, and the journals of this change."""
        self.flush()
        for journal in self._journals:
            journal.add_to(self.write, self.sealer)

    def _fetch(self, column: str, keys: Iterable[str]) -> None:
        if column == "path_key":
            keys = dict.fromkeys(map(path_key_of, keys))
        if column != "record_id":
            keys = [self._lookup(column, key) for key in keys]
        self._take(self._rows(RECORD, kind=self.kind, **{column: list(keys)}))

    def _take(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in self._opened(RECORD, [tuple(row) for row in rows]):
            # What the change has touched already is newer than what the table holds.
            if row[0] in self._tracked:
                continue
            sound: Sequence[Any] = row
            was: dict[str, Any] = {}
            try:
                record = RECORD_MAPPING.value(row)
            except Unreadable:
                # This change mends it.
                sound, was = mended_row(row)
                self._mended.append(sound[0])
                record = RECORD_MAPPING.value(sound)
                at = record.last_reinforced
                self.tell(RecordEvent(record.id, "updated", at, details={"was": was}))
            cells = dict(zip(RECORD.names, sound, strict=True))
            forgotten_at = from_micros(cells["forgotten_at"])
            self._track(_Tracked(record, cells["same_key"], forgotten_at, dirty=bool(was)))

    def _track(self, tracked: _Tracked) -> None:
        record = tracked.record
        self._tracked[record.id] = tracked
        self._known["record_id"].add(record.id)
        self._alike.setdefault(tracked.same_key, {})[record.id] = None
        if record.path is not None:
            self._alike.setdefault(folded_path(record.path), {})[record.id] = None

    def _find_alike(self, key: str) -> list[_Tracked]:
        ids = self._alike.get(key, ())
        return [self._tracked[record_id] for record_id in ids if record_id in self._tracked]

    @staticmethod
    def _living(tracked: Iterable[_Tracked]) -> Sequence[MemoryRecord]:
        return sorted(
            (current.record for current in tracked if current.forgotten_at is None),
            key=lambda r: (r.valid_from, r.valid_to is None, r.valid_to or r.valid_from, r.id),
        )
