"""Notes of projects in truth: observations and diary entries, as records of kinds of their own.

In: ids, kinds, projects. Out: `Observation`, `DiaryEntry`, or the `MemoryRecord` beneath them,
whose type is the note's kind and whose payload has importance, project and subject. They share
tables, events, supersession and forgetting with lasting memories, and no reader of memories ever
sees them. It never reads a clock, and it never embeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anaphora.errors import NotFound, Unreadable
from anaphora.store.codecs import readable
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows, refuse_another_form
from anaphora.store.db.in_lists import ids_named
from anaphora.store.records.rows import (
    COLUMNS,
    EVENT_COLUMNS,
    RecordEvent,
    event_of,
    record_of,
    same_key_of,
)
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import MemoryRecord
from anaphora.values.projects import NOTE_KINDS, DiaryEntry, NoteKind, Observation

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database
    from anaphora.store.records.work import RecordTransaction

NoteRecordKind = Literal["observation", "diary"]
RECORD_KINDS: tuple[NoteRecordKind, ...] = ("observation", "diary")
DEFAULT_IMPORTANCE = 3

_KINDS = "('observation', 'diary')"
_NOTES = (
    f"SELECT {', '.join(COLUMNS)} FROM record "  # noqa: S608 - names of ours
    f"WHERE namespace = :namespace AND kind IN {_KINDS} "
)
_SINCE = _NOTES + "AND seq > :since ORDER BY seq LIMIT :limit"
_BACKWARDS = _NOTES + "{where}AND record_id < :before ORDER BY record_id DESC LIMIT :limit"
_CURRENT = "AND valid_until IS NULL AND forgotten_at IS NULL "
_GONE = (
    f"SELECT seq, owner_id FROM tombstone WHERE namespace = :namespace AND kind IN {_KINDS} "  # noqa: S608
    "AND seq > :since ORDER BY seq LIMIT :limit"
)
_EVENTS = (
    f"SELECT {', '.join(EVENT_COLUMNS)} FROM record_event "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND record_id = :id ORDER BY at, seq"
)
_STEP = 512
_KIND = COLUMNS.index("kind")
_SEQ = COLUMNS.index("seq")
# Above every id: ids are hexadecimal digits and hyphens, with a prefix of letters or none.
_ABOVE = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as truth has it: which kind of record, and the record."""

    kind: NoteRecordKind
    record: MemoryRecord

    @property
    def type(self) -> str:
        """The kind of an observation; "note" for a diary entry."""
        return str(self.record.type)

    @property
    def project(self) -> str | None:
        """The id of the project that it is about, None for all of them."""
        project: str | None = (self.record.payload or {}).get("project")
        return project

    @property
    def importance(self) -> int:
        """1 to 5."""
        return int((self.record.payload or {}).get("importance", DEFAULT_IMPORTANCE))

    @property
    def subject(self) -> str | None:
        """What a diary entry is about, in a few words."""
        subject: str | None = (self.record.payload or {}).get("subject")
        return subject


def payload_of(
    *, importance: int | None = None, project: str | None = None, subject: str | None = None
) -> dict[str, Any] | None:
    """The payload of a note's record."""
    given = {"importance": importance, "project": project, "subject": subject}
    return {name: value for name, value in given.items() if value is not None} or None


def observation_of(row: NoteRow, redacted: tuple[str, ...] = ()) -> Observation:
    """The observation that a row stands for."""
    record = row.record
    kind = row.type if row.type in NOTE_KINDS else "note"
    return Observation(
        id=record.id,
        text=record.text,
        kind=kind,
        importance=row.importance,
        created_at=record.created_at,
        tags=record.tags,
        source=record.sources[0] if record.sources else None,
        project=row.project,
        supersedes=record.supersedes,
        superseded_by=record.superseded_by,
        redacted=redacted,
    )


def diary_of(row: NoteRow, redacted: tuple[str, ...] = ()) -> DiaryEntry:
    """The diary entry that a row stands for."""
    record = row.record
    return DiaryEntry(
        id=record.id,
        summary=record.text,
        created_at=record.created_at,
        subject=row.subject,
        tags=record.tags,
        project=row.project,
        redacted=redacted,
    )


class Notes:
    """The notes of one namespace. Every read sees every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self.truth = truth
        self.namespace = namespace
        self.sealer = sealer
        self._known_form = False
        self.vectors = RecordVectors(truth, namespace, sealer, kinds=RECORD_KINDS)

    @contextmanager
    def change(self, kind: NoteRecordKind = "observation") -> Iterator[RecordTransaction]:
        """One write transaction on the notes of a kind, with the rules of `record_rules`.

        To it, memories and notes of the other kind do not exist.
        """
        from anaphora.store.records.work import RecordTransaction

        if not self._known_form:
            refuse_another_form(self.truth, self.sealer)
            self._known_form = True
        with self.truth.write(self.namespace) as write:
            self.sealer.check()
            work = RecordTransaction(write, self.sealer, kind)
            yield work
            work.flush()

    def note(self, note_id: str) -> NoteRow:
        """The note of this id, also one that was superseded or softly forgotten.

        Raises `NotFound`, `Unreadable`.
        """
        found = self._opened(_NOTES + "AND record_id = :id", id=note_id)
        if not found:
            raise NotFound("note", note_id)
        return _note_of(found[0])

    def many(self, note_ids: Iterable[str]) -> dict[str, NoteRow]:
        """The notes of these ids that exist, by id."""
        found: dict[str, NoteRow] = {}
        for some, names in ids_named(note_ids):
            for row in self._notes(_NOTES + f"AND record_id IN ({names})", **some):
                found[row.record.id] = row
        return found

    def same(self, kind: NoteRecordKind, record: MemoryRecord) -> NoteRow | None:
        """The current note of this kind with the same type, payload and text, if there is one."""
        key = self.sealer.lookup("same_key", self.namespace, same_key_of(record))
        where = _NOTES + "AND same_key = :key " + _CURRENT + "ORDER BY record_id"
        return next((row for row in self._notes(where, key=key) if row.kind == kind), None)

    def notes_since(self, since: int, limit: int = _STEP) -> tuple[NoteRow, ...]:
        """Notes that changed after number `since`, in order of their numbers, past ones too."""
        while rows := self._opened(_SINCE, since=since, limit=limit):
            if found := tuple(readable(rows, _note_of)):
                return found
            since = rows[-1][_SEQ]
        return ()

    def gone_since(self, since: int, limit: int = 2**62) -> tuple[tuple[int, str], ...]:
        """(number, id) of notes that were deleted for good after number `since`."""
        return tuple((row[0], row[1]) for row in self._rows(_GONE, since=since, limit=limit))

    def list(
        self,
        *,
        kind: NoteRecordKind | None = None,
        types: Iterable[NoteKind] | None = None,
        project: str | None = None,
        current: bool = True,
        limit: int = 50,
    ) -> tuple[NoteRow, ...]:
        """At most `limit` notes, the latest first.

        `types` are kinds of observation; `project` also lets through what is about all projects;
        `current` leaves out what was superseded or softly forgotten.
        """
        wanted: set[str] | None = None if types is None else set(types)
        where = "AND kind = :kind " if kind else ""
        statement = _BACKWARDS.format(where=where + (_CURRENT if current else ""))
        given = {"kind": kind} if kind else {}
        found: list[NoteRow] = []
        before = _ABOVE
        while rows := self._opened(statement, before=before, limit=_STEP, **given):
            before = rows[-1][COLUMNS.index("record_id")]
            found += [
                row
                for row in readable(rows, _note_of)
                if (project is None or row.project in (None, project))
                and (wanted is None or row.type in wanted)
            ]
            if len(found) >= limit:
                break
        return tuple(found[:limit])

    def history(self, note_id: str) -> tuple[NoteRow, ...]:
        """What a note replaced, and what replaced it: the whole chain, oldest first."""
        chain = [self.note(note_id)]
        seen = {note_id}
        while (older := chain[0].record.supersedes) and older not in seen:
            seen.add(older)
            found = self.many([older])
            if older not in found:
                break
            chain.insert(0, found[older])
        while (newer := chain[-1].record.superseded_by) and newer not in seen:
            seen.add(newer)
            found = self.many([newer])
            if newer not in found:
                break
            chain.append(found[newer])
        return tuple(chain)

    def events(self, note_id: str) -> tuple[RecordEvent, ...]:
        """Every time that a note was said or changed, in order of time."""
        rows = self._rows(_EVENTS, id=note_id)
        opened = open_rows(self.sealer, "record_event", EVENT_COLUMNS, self.namespace, rows)
        return tuple(readable(opened, event_of))

    def _notes(self, statement: str, **values: str | int | None) -> Sequence[NoteRow]:
        return list(readable(self._opened(statement, **values), _note_of))

    def _opened(self, statement: str, **values: str | int | None) -> Sequence[tuple[Any, ...]]:
        """Rows of COLUMNS."""
        rows = self._rows(statement, **values)
        return open_rows(self.sealer, "record", COLUMNS, self.namespace, rows)

    def _rows(self, statement: str, **values: str | int | None) -> Sequence[tuple[Any, ...]]:
        self.sealer.check()
        return self.truth.rows(statement, {"namespace": self.namespace, **values})


def _note_of(row: Sequence[Any]) -> NoteRow:
    note = NoteRow(row[_KIND], record_of(row))
    importance = (note.record.payload or {}).get("importance", DEFAULT_IMPORTANCE)
    if not isinstance(importance, int):
        raise Unreadable("record", note.record.id, f"its importance is {importance!r}")
    return note
