"""Notes of projects in an export and back: observations and diary entries.

A note says which project it is about by id and name; projects are not exported. A note whose
project is not known here keeps the id, and comes under the project when it is imported again after
the project was indexed. They meet the notes that are here by the rules of `memories`. `load` links
them to what they name when all lines were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from anaphora.ops.transfer.lines import Line, number_in, text_in
from anaphora.ops.transfer.memories import (
    IncomingRecord,
    RecordFields,
    RecordMerger,
    without_other_kinds,
)
from anaphora.ops.transfer.reading import BatchReader, Outcome
from anaphora.store.projects.notes import RECORD_KINDS, NoteRecordKind, payload_of
from anaphora.store.records.rows import same_key_of
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord
from anaphora.values.projects import NOTE_KINDS

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_MOST_IMPORTANT = 5
_PAYLOAD = ("importance", "subject", "project")
# A note has no place for these.
_UNUSED = ("path", "payload", "category", "conversation_id", "turn_index", "parent", "pin")
_FIELDS: Final[Mapping[NoteRecordKind, RecordFields]] = {
    "observation": RecordFields(NOTE_KINDS, "note", _UNUSED),
    "diary": RecordFields((), "note", (*_UNUSED, "type")),
}


def project_note_lines(services: NamespaceServices, tell: Callable[[int], None]) -> Iterator[Line]:
    """All notes, with everything that is known of them but vectors and what they are linked to."""
    notes = services.notes
    names = {row.id: row.name for row in services.projects.rows()}
    after = done = 0
    while found := notes.changed_since(after):
        for row in found:
            value = _FIELDS[row.kind].line(row.record, notes.events(row.record.id))
            payload = row.record.payload or {}
            value |= {name: payload.get(name) for name in _PAYLOAD}
            value["project_name"] = names.get(row.project or "")
            yield {"kind": row.kind, **value}
        after = found[-1].record.seq
        done += len(found)
        tell(done)


@dataclass(frozen=True, slots=True)
class _IncomingNote:
    """A note of an export, and how its project is called there."""

    kind: NoteRecordKind
    item: IncomingRecord
    project_name: str | None


class ProjectNoteReader(BatchReader[_IncomingNote]):
    """Reads the notes of projects of one namespace."""

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
        more: dict[str, Any] = {"type": "note"} if kind == "diary" else {}
        item = _FIELDS[kind].incoming(line, payload=payload, **more)
        return _IncomingNote(kind, item, text_in(line, "project_name"))

    def write(self, batch: Sequence[tuple[int, _IncomingNote]]) -> None:
        """As `BatchReader.write`."""
        for kind in RECORD_KINDS:
            some = [(number, note) for number, note in batch if note.kind == kind]
            if some:
                self.target.count(self._bring_in(kind, some), "notes ")

    def _bring_in(
        self, kind: NoteRecordKind, batch: Sequence[tuple[int, _IncomingNote]]
    ) -> list[Outcome]:
        names = {note.item.record.id: note.project_name for _, note in batch}
        items = without_other_kinds(
            self.target,
            [(number, note.item) for number, note in batch],
            kind,
            "its id is that of a record of kind {!r} here",
        )
        with self.target.services.notes.change(kind) as work:
            work.load(ids=[item.record.id for item in items])
            moved = [self._placed(work, item, names[item.record.id]) for item in items]
            outcomes = self._merger.merge(work, [item for item, _ in moved])
        for at, (item, changed) in enumerate(moved):
            if changed and outcomes[at] == "known":
                outcomes[at] = "changed"
            if outcomes[at] in {"added", "changed"}:
                self.target.touched_notes.append(str(self._merger.id_of(item.record.id)))
        return outcomes

    def _placed(
        self, work: RecordTransaction, item: IncomingRecord, project_name: str | None
    ) -> tuple[IncomingRecord, bool]:
        """The note under its project here; whether one that is here was put under it as well."""
        record, known = item.record, self._projects
        project = self._project_here((record.payload or {}).get("project"), project_name)
        here = work.find(record.id)
        if here is None or _apart(here) != _apart(record):
            return _under(item, project), False
        current = (here.payload or {}).get("project")
        if current == project or project not in known or current in (None, *known):
            return _under(item, current), False
        fresh = _under(item, project)
        payload = fresh.record.payload
        work.change(here.id, payload=payload, same_key=same_key_of(replace(here, payload=payload)))
        return fresh, True

    def _project_here(self, project: str | None, name: str | None) -> str | None:
        if project is None or project in self._projects:
            return project
        called = [one for one, known in self._projects.items() if known == name]
        return called[0] if len(called) == 1 else project

    @cached_property
    def _projects(self) -> Mapping[str, str]:
        return {row.id: row.name for row in self.target.services.projects.rows()}

    @cached_property
    def _merger(self) -> RecordMerger:
        gone = frozenset(one for _, one in self.target.services.notes.tombstones_since(0))
        return RecordMerger(gone, self.target.again)


def _under(item: IncomingRecord, project: str | None) -> IncomingRecord:
    payload = {k: v for k, v in (item.record.payload or {}).items() if k != "project"}
    if project is not None:
        payload["project"] = project
    return replace(item, record=replace(item.record, payload=payload or None))


def _apart(record: MemoryRecord) -> tuple[Any, ...]:
    """What a note says, apart from its project and its kind."""
    payload = {k: v for k, v in (record.payload or {}).items() if k != "project"}
    return same_key_of(replace(record, type="semantic", payload=payload or None)), record.id
