"""Notes of projects in an export: observations and diary entries, as lines and back into a home.

In: rows of notes, or their lines. Out: lines, or notes in truth, by the rules of `merging`. A note
says which project it is about by id and name; projects are not exported. A note whose project is
not known here keeps the id, and comes under the project when it is imported again after the
project was indexed. Nothing here links a note to files: who imports does that afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anaphora.container.namespace import NamespaceServices
from anaphora.ops.cleaning import cleaned
from anaphora.ops.lines import event_from, memory_from, number_in, record_members, text_in, to_line
from anaphora.ops.merging import Incoming, Merger
from anaphora.store.db.in_lists import ids_named
from anaphora.store.projects.notes import RECORD_KINDS, NoteRecordKind, NoteRow, payload_of
from anaphora.store.records.rows import RecordEvent, same_key_of
from anaphora.store.records.work import RecordTransaction
from anaphora.values.memories import MemoryRecord
from anaphora.values.projects import NOTE_KINDS

_MOST_IMPORTANT = 5
_KINDS_OF = "SELECT record_id, kind FROM record WHERE namespace = :namespace AND record_id IN ({})"
# A note has no place for these.
_UNUSED = ("path", "payload", "category", "conversation_id", "turn_index", "parent")


def project_note_line(
    namespace: str, row: NoteRow, events: Sequence[RecordEvent], project_name: str | None
) -> bytes:
    """A note with everything that is known of it but its vectors and what it is linked to."""
    value: dict[str, Any] = {"kind": row.kind, "namespace": namespace}
    value |= record_members(row.record, events)
    for name in _UNUSED:
        del value[name]
    if row.kind == "diary":
        del value["type"]
    payload = row.record.payload or {}
    value |= {name: payload.get(name) for name in ("importance", "subject", "project")}
    return to_line(value | {"project_name": project_name})


@dataclass(frozen=True, slots=True)
class _NoteIn:
    """A note of an export: its line's number, what it is, and how its project is called there."""

    number: int
    kind: NoteRecordKind
    item: Incoming
    project_name: str | None


def other_kinds(lane: NamespaceServices, record_ids: Sequence[str], kind: str) -> dict[str, str]:
    """Which of these ids are those of records of another kind, and of which."""
    found: dict[str, str] = {}
    for some, names in ids_named(record_ids):
        statement = _KINDS_OF.format(names)
        rows = lane.records.truth.rows(statement, {"namespace": lane.namespace, **some})
        found.update((row[0], row[1]) for row in rows if row[1] != kind)
    return found


@dataclass(slots=True)
class ProjectNotesIn:
    """Takes the notes of projects of one namespace. `again`: what was forgotten here comes back.

    `problem` is told of a line that cannot come in. `touched` are the ids here of notes that came
    or changed, in the order of the file.
    """

    lane: NamespaceServices
    again: bool
    problem: Callable[[int, str], None]
    touched: list[str] = field(default_factory=list)
    waiting: list[_NoteIn] = field(default_factory=list)
    _merger: Merger | None = None
    _projects: Mapping[str, str] | None = None

    def take(self, number: int, found: Mapping[str, Any]) -> None:
        """Take a line. ValueError for one that cannot be read."""
        self.waiting.append(_read(number, found))

    def flush(self) -> Counter[str]:
        """Bring in what waits; how many were added, changed, known or forgotten here."""
        waiting, self.waiting = self.waiting, []
        done: Counter[str] = Counter()
        for kind in RECORD_KINDS:
            some = [one for one in waiting if one.kind == kind]
            if some:
                done.update(self._bring(kind, some))
        return done

    def _bring(self, kind: NoteRecordKind, notes: Sequence[_NoteIn]) -> list[str]:
        taken = other_kinds(self.lane, [one.item.record.id for one in notes], kind)
        good: list[_NoteIn] = []
        for one in notes:
            other = taken.get(one.item.record.id)
            if other is None:
                good.append(one)
            else:
                self.problem(one.number, f"its id is that of a record of kind {other!r} here")
        merger = self._merging()
        with self.lane.notes.change(kind) as work:
            work.load(ids=[one.item.record.id for one in good])
            moved = [self._placed(work, one) for one in good]
            became: list[str] = list(merger.take(work, [item for item, _ in moved]))
        for at, (item, changed) in enumerate(moved):
            if changed and became[at] == "known":
                became[at] = "changed"
            if became[at] in {"added", "changed"}:
                self.touched.append(str(merger.id_of(item.record.id)))
        return became

    def _placed(self, work: RecordTransaction, note: _NoteIn) -> tuple[Incoming, bool]:
        """The note under its project here; whether one that is here was put under it as well."""
        record = note.item.record
        project = self._project_here((record.payload or {}).get("project"), note.project_name)
        here = work.find(record.id)
        if here is None or _apart(here) != _apart(record):
            return _under(note.item, project), False
        stands = (here.payload or {}).get("project")
        if stands == project or project not in self._known() or stands in (None, *self._known()):
            return _under(note.item, stands), False
        fresh = _under(note.item, project)
        work.change(
            here.id,
            payload=fresh.record.payload,
            same_key=same_key_of(replace(here, payload=fresh.record.payload)),
        )
        return fresh, True

    def _project_here(self, project: str | None, name: str | None) -> str | None:
        if project is None or project in self._known():
            return project
        called = [one for one, known in self._known().items() if known == name]
        return called[0] if len(called) == 1 else project

    def _known(self) -> Mapping[str, str]:
        if self._projects is None:
            self._projects = {row.id: row.name for row in self.lane.projects.rows()}
        return self._projects

    def _merging(self) -> Merger:
        if self._merger is None:
            gone = frozenset(one for _, one in self.lane.notes.gone_since(0))
            self._merger = Merger(gone, self.again)
        return self._merger


def _read(number: int, found: Mapping[str, Any]) -> _NoteIn:
    kind: NoteRecordKind = "diary" if found["kind"] == "diary" else "observation"
    given = {name: value for name, value in found.items() if name not in _UNUSED}
    if kind == "diary":
        given["type"] = "note"
    importance = number_in(found, "importance")
    if importance is not None and not 1 <= importance <= _MOST_IMPORTANT:
        raise ValueError('"importance" is no number from 1 to 5')
    payload = payload_of(
        importance=importance, project=text_in(found, "project"), subject=text_in(found, "subject")
    )
    record = memory_from({"type": "note", **given, "payload": payload}, NOTE_KINDS)
    listed = found.get("events", [])
    if not isinstance(listed, list):
        raise ValueError('"events" is no list')
    events = tuple(event_from(record.id, one) for one in listed)
    item = cleaned(Incoming(record, events))
    return _NoteIn(number, kind, item, text_in(found, "project_name"))


def _under(item: Incoming, project: str | None) -> Incoming:
    payload = {k: v for k, v in (item.record.payload or {}).items() if k != "project"}
    if project is not None:
        payload["project"] = project
    return replace(item, record=replace(item.record, payload=payload or None))


def _apart(record: MemoryRecord) -> tuple[Any, ...]:
    """What a note says, apart from its project and its kind."""
    payload = {k: v for k, v in (record.payload or {}).items() if k != "project"}
    return same_key_of(replace(record, type="semantic", payload=payload or None)), record.id
