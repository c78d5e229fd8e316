"""Notes of projects in an export and back: observations and diary entries.

A note names its project by id and name; projects are not exported. A note whose project is unknown
here keeps the id, and is assigned to the project when it is imported again after the project was
indexed. They are merged with the notes here by the rules of `memories`. `load` links them to the
records that they name when all lines were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from anaphora.container.feature import LineKind
from anaphora.features.projects.services import ProjectServices
from anaphora.features.projects.store.notes import RECORD_KINDS, NoteRecordKind, payload_of
from anaphora.ops.transfer.memories import (
    IncomingRecord,
    RecordFields,
    RecordMerger,
    without_other_kinds,
)
from anaphora.ops.transfer.reading import BatchReader, LoadTarget
from anaphora.store.line_fields import number_in, text_in
from anaphora.store.lines import Line
from anaphora.store.records.rows import same_key_of
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import NOTE_KINDS, MemoryRecord

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_MOST_IMPORTANT = 5
_PAYLOAD = ("importance", "subject", "project")
# Fields that a note does not use.
_UNUSED = ("path", "payload", "category", "conversation_id", "turn_index", "parent", "pin")
_FIELDS: Final[Mapping[NoteRecordKind, RecordFields]] = {
    "observation": RecordFields(NOTE_KINDS, "note", _UNUSED),
    "diary": RecordFields((), "note", (*_UNUSED, "type")),
}


def project_note_lines(services: NamespaceServices, tell: Callable[[int], None]) -> Iterator[Line]:
    """All notes, with all their data except vectors and links."""
    projects = services.feature(ProjectServices)
    notes = projects.note_store
    names = {row.id: row.name for row in projects.store.rows()}
    last_seq = done_count = 0
    while rows := notes.changed_since(last_seq):
        for row in rows:
            members = _FIELDS[row.kind].line(row.record, notes.events(row.record.id))
            payload = row.record.payload or {}
            members |= {name: payload.get(name) for name in _PAYLOAD}
            members["project_name"] = names.get(row.project or "")
            yield {"kind": row.kind, **members}
        last_seq = rows[-1].record.seq
        done_count += len(rows)
        tell(done_count)


@dataclass(frozen=True, slots=True)
class _IncomingNote:
    """A note of an export, and the name of its project there."""

    kind: NoteRecordKind
    item: IncomingRecord
    project_name: str | None


class ProjectNoteReader(BatchReader[_IncomingNote]):
    """Reads the notes of projects of one namespace, and links them when all are written."""

    def __init__(self, target: LoadTarget) -> None:
        super().__init__(target)
        self._project_services = target.services.feature(ProjectServices)
        self._touched: list[str] = []

    def parse(self, line: Line) -> _IncomingNote:
        """As `BatchReader.parse`."""
        kind: NoteRecordKind = "diary" if line["kind"] == "diary" else "observation"
        importance = number_in(line, "importance")
        if importance is not None and not 1 <= importance <= _MOST_IMPORTANT:
            raise ValueError('"importance" is not a number from 1 to 5')
        payload = payload_of(
            importance=importance,
            project=text_in(line, "project"),
            subject=text_in(line, "subject"),
        )
        type_field: dict[str, Any] = {"type": "note"} if kind == "diary" else {}
        incoming = _FIELDS[kind].incoming(line, payload=payload, **type_field)
        return _IncomingNote(kind, incoming, text_in(line, "project_name"))

    def write(self, batch: Sequence[tuple[int, _IncomingNote]]) -> None:
        """As `BatchReader.write`."""
        for kind in RECORD_KINDS:
            notes = [(number, note) for number, note in batch if note.kind == kind]
            if not notes:
                continue
            names = {note.item.record.id: note.project_name for _, note in notes}
            items = without_other_kinds(
                self.target,
                [(number, note.item) for number, note in notes],
                kind,
                "its id is that of a record of kind {!r} here",
            )
            with self._project_services.note_store.change(kind) as work:
                work.load(ids=[incoming.record.id for incoming in items])
                moved_notes = [
                    self._assign_project(work, incoming, names[incoming.record.id])
                    for incoming in items
                ]
                outcomes = self._merger.merge(work, [incoming for incoming, _ in moved_notes])
            for at, (incoming, is_changed) in enumerate(moved_notes):
                if is_changed and outcomes[at] == "known":
                    outcomes[at] = "changed"
                if outcomes[at] in {"added", "changed"}:
                    self._touched.append(str(self._merger.id_of(incoming.record.id)))
            self.target.count(outcomes, "notes ")

    def end(self) -> None:
        """As `LineReader.end`."""
        if self._touched:
            self._project_services.note_taking.link_imported(tuple(dict.fromkeys(self._touched)))

    def _assign_project(
        self, work: RecordTransaction, incoming: IncomingRecord, project_name: str | None
    ) -> tuple[IncomingRecord, bool]:
        """The note under its project here; whether the present note was moved there as well."""
        record, projects = incoming.record, self._projects
        project = (record.payload or {}).get("project")
        if project is not None and project not in projects:
            matches = [known_id for known_id, name in projects.items() if name == project_name]
            project = matches[0] if len(matches) == 1 else project
        present = work.find(record.id)
        if present is None or _apart(present) != _apart(record):
            return _under(incoming, project), False
        assigned_project = (present.payload or {}).get("project")
        if (
            assigned_project == project
            or project not in projects
            or assigned_project in (None, *projects)
        ):
            return _under(incoming, assigned_project), False
        moved_record = _under(incoming, project)
        payload = moved_record.record.payload
        work.change(
            present.id, payload=payload, same_key=same_key_of(replace(present, payload=payload))
        )
        return moved_record, True

    @cached_property
    def _projects(self) -> Mapping[str, str]:
        return {row.id: row.name for row in self._project_services.store.rows()}

    @cached_property
    def _merger(self) -> RecordMerger:
        deleted_ids = frozenset(
            note_id for _, note_id in self._project_services.note_store.tombstones_since(0)
        )
        return RecordMerger(deleted_ids, self.target.again)


def _under(incoming: IncomingRecord, project: str | None) -> IncomingRecord:
    payload = {k: v for k, v in (incoming.record.payload or {}).items() if k != "project"}
    if project is not None:
        payload["project"] = project
    return replace(incoming, record=replace(incoming.record, payload=payload or None))


def _apart(record: MemoryRecord) -> tuple[Any, ...]:
    """The content of a note, apart from its project and its kind."""
    payload = {k: v for k, v in (record.payload or {}).items() if k != "project"}
    return same_key_of(replace(record, type="semantic", payload=payload or None)), record.id


LINES: Final = (
    LineKind(
        ("observation", "diary"),
        50,
        lambda source: project_note_lines(source.services, partial(source.tell, "notes")),
        ProjectNoteReader,
    ),
)
