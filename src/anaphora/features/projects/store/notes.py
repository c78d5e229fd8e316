"""Notes of projects: observations and diary entries, as records of kinds of their own.

The type of such a record is the note's kind, and its payload has importance, project and subject.
Notes share tables, events, supersession and forgetting with lasting memories, and no reader of
memories ever sees them. It never reads a clock, and it never embeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from anaphora.errors import Unreadable
from anaphora.features.projects.values import DiaryEntry, Observation
from anaphora.store.codecs import readable
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.tables import RECORD
from anaphora.store.namespace import STEP
from anaphora.store.records.rows import DOCUMENT_SECTION, RECORD_MAPPING
from anaphora.store.records.store import CURRENT, RecordReader
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import NOTE_KINDS, MemoryRecord, NoteKind

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

NoteRecordKind = Literal["observation", "diary"]
RECORD_KINDS: tuple[NoteRecordKind, ...] = ("observation", "diary")
INDEXED_KINDS: Final = (*RECORD_KINDS, DOCUMENT_SECTION)
"""What the index of sections has besides those of projects' files."""
DEFAULT_IMPORTANCE = 3

_KIND = RECORD.names.index("kind")
# Above every id: ids are hexadecimal digits and hyphens, with a prefix of letters or none.
_ABOVE = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as the database has it: which kind of record, and the record."""

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
    fields = {"importance": importance, "project": project, "subject": subject}
    return {name: field for name, field in fields.items() if field is not None} or None


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


class Notes(RecordReader[NoteRow]):
    """The notes of one namespace, or its records of other `kinds`, read as notes.

    Every read sees every write acknowledged by any process.
    """

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer = CLEAR,
        *,
        kinds: tuple[str, ...] = RECORD_KINDS,
    ) -> None:
        super().__init__(truth, namespace, sealer, kinds=kinds, noun="note", value=_note_of)
        self.vectors = RecordVectors(truth, namespace, sealer, kinds=kinds)

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
        type_names: set[str] | None = None if types is None else set(types)
        where = "AND kind = :kind " if kind else ""
        where += CURRENT if current else ""
        where += "AND record_id < :before ORDER BY record_id DESC LIMIT :limit"
        parameters = {"kind": kind} if kind else {}
        notes: list[NoteRow] = []
        before = _ABOVE
        while rows := self._selected(where, before=before, limit=STEP, **parameters):
            before = rows[-1][0]
            notes += [
                row
                for row in readable(rows, _note_of)
                if (project is None or row.project in (None, project))
                and (type_names is None or row.type in type_names)
            ]
            if len(notes) >= limit:
                break
        return tuple(notes[:limit])

    def history(self, note_id: str) -> tuple[NoteRow, ...]:
        """What a note replaced, and what replaced it: the whole chain, oldest first."""
        chain = [self.get(note_id)]
        seen_ids = {note_id}
        while (older := chain[0].record.supersedes) and older not in seen_ids:
            seen_ids.add(older)
            notes_by_id = self.many([older])
            if older not in notes_by_id:
                break
            chain.insert(0, notes_by_id[older])
        while (newer := chain[-1].record.superseded_by) and newer not in seen_ids:
            seen_ids.add(newer)
            notes_by_id = self.many([newer])
            if newer not in notes_by_id:
                break
            chain.append(notes_by_id[newer])
        return tuple(chain)


def _note_of(row: Sequence[Any]) -> NoteRow:
    note = NoteRow(row[_KIND], RECORD_MAPPING.value(row))
    importance = (note.record.payload or {}).get("importance", DEFAULT_IMPORTANCE)
    if not isinstance(importance, int):
        raise Unreadable("record", note.record.id, f"its importance is {importance!r}")
    return note
