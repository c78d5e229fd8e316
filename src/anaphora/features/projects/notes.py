"""Notes are written, linked and forgotten: observations of a project, diary entries of a session.

A note is durable first, then linked to what it names, then embedded where the model is at hand;
secrets are taken out before anything is stored. Said again it is not kept twice. What a note names
counts by where it stands: its source 1.0, its tags and subject 0.8, back-ticked and path-like words
of its text 0.7 (the strengths of the seed's own graph). A name that many things have says nothing.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from anaphora.calls.caller import signed
from anaphora.errors import EmbeddingError, InvalidInput, NotFound
from anaphora.features.projects.store.graph_rows import NoteLink
from anaphora.features.projects.store.notes import (
    NoteRecordKind,
    NoteRow,
    diary_of,
    observation_of,
    payload_of,
)
from anaphora.features.projects.values import DiaryEntry, EntityType, Observation, Predicate
from anaphora.index.backlog import Backlog, fill_records
from anaphora.ingest.checking import checked, without_secrets
from anaphora.values.memories import NOTE_KINDS, NewMemory, NoteKind

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.notes import Notes
    from anaphora.features.projects.store.store import Projects
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.vectors import TextToEmbed


# A note is embedded while its writer waits only if that takes milliseconds.
_INLINE = 4_000
_GROUP = 128


class NoteWriter:
    """Takes notes in one namespace, that of `linker`. Safe to share between threads."""

    def __init__(
        self,
        projects: Projects,
        linker: NoteLinker,
        embedder: EmbedderService,
        follow: Callable[[], object] = lambda: None,
    ) -> None:
        self._follow = follow
        self._projects = projects
        self._linker = linker
        self._notes, self._graph = linker.notes, linker.graph
        self._clock, self._ids = linker.clock, linker.ids
        self._embedder = embedder
        self._backlog: Backlog[TextToEmbed] = Backlog(
            embedder, lambda text: text.record_id, lambda text: text.text, self._put_vectors
        )

    def observe(
        self,
        text: str,
        *,
        kind: NoteKind = "note",
        importance: int = 3,
        tags: Iterable[str] = (),
        source: str | None = None,
        supersedes: str | None = None,
        project: str | None = None,
    ) -> Observation:
        """Keep an observation; when this returns it is on the disk.

        Raises InvalidInput naming the field, NotFound for `supersedes` or `project`, StoreError.
        """
        if kind not in NOTE_KINDS:
            raise InvalidInput("kind", kind, f"expected one of {', '.join(NOTE_KINDS)}")
        number = not isinstance(importance, bool) and isinstance(importance, int)
        if not number or not 1 <= importance <= 5:
            raise InvalidInput("importance", importance, "expected a whole number from 1 to 5")
        payload = payload_of(importance=importance, project=self._find_project(project))
        new_memory = NewMemory(
            text,
            payload=payload,
            tags=cast("Any", tags),
            source=signed(source),
            supersedes=supersedes,
        )
        row, redacted_kinds = self._keep("observation", kind, new_memory)
        return observation_of(row, redacted_kinds)

    def write_diary(
        self,
        summary: str,
        *,
        subject: str | None = None,
        tags: Iterable[str] = (),
        project: str | None = None,
    ) -> DiaryEntry:
        """Keep a diary entry; when this returns it is on the disk. Raises what `observe` does."""
        if subject is not None and not str(subject).strip():
            raise InvalidInput("subject", subject, "must be a non-empty string")
        payload = payload_of(subject=subject, project=self._find_project(project))
        new_memory = NewMemory(summary, payload=payload, tags=cast("Any", tags))
        row, redacted_kinds = self._keep("diary", "note", new_memory)
        return diary_of(row, redacted_kinds)

    def observations(self, project: str | None, limit: int) -> tuple[Observation, ...]:
        """At most `limit` notes that hold, the latest first. NotFound for `project`."""
        rows = self._notes.list(
            kind="observation", project=self._find_project(project), limit=limit
        )
        return tuple(observation_of(row, ()) for row in rows)

    def diary(self, project: str | None, limit: int) -> tuple[DiaryEntry, ...]:
        """At most `limit` diary entries, the latest first. NotFound for `project`."""
        rows = self._notes.list(kind="diary", project=self._find_project(project), limit=limit)
        return tuple(diary_of(row, ()) for row in rows)

    def forget(self, note_id: str, *, soft: bool = False) -> ForgottenRecords:
        """Forget a note with what it superseded; an id that is no note's forgets nothing."""
        from anaphora.store.records.forgetting import (
            ForgottenRecords,
            forget_for_good,
            forget_softly,
        )

        row = self._notes.many([note_id]).get(note_id)
        if row is None:
            return ForgottenRecords()
        with self._notes.change(row.kind, scrub=not soft) as work:
            if not soft:
                forgotten_records = forget_for_good(work, [note_id])
            else:
                forgotten_records = forget_softly(work, [note_id], self._clock())
        if soft:
            with self._graph.change() as graph:
                graph.invalidate(forgotten_records.ids, self._clock())
        return forgotten_records

    def would_forget(self, note_id: str) -> ForgottenRecords:
        """What `forget` would take, without doing it."""
        from anaphora.store.records.forgetting import ForgottenRecords, would_forget

        row = self._notes.many([note_id]).get(note_id)
        if row is None:
            return ForgottenRecords()
        with self._notes.change(row.kind) as work:
            return would_forget(work, [note_id])

    def bring_back(self, note_id: str) -> tuple[str, ...]:
        """Undo a soft forgetting, of the note and what went with it; the ids that are back."""
        from anaphora.store.records.forgetting import bring_back, would_forget

        row = self._notes.many([note_id]).get(note_id)
        if row is None:
            return ()
        with self._notes.change(row.kind) as work:
            restored_ids = bring_back(work, would_forget(work, [note_id]).ids, self._clock())
        self.link_imported(restored_ids)
        return restored_ids

    def link_imported(self, note_ids: Iterable[str]) -> None:
        """Link imported notes; what was superseded or forgotten is closed in the graph too."""
        rows = sorted(self._notes.many(note_ids).values(), key=lambda row: row.record.id)
        for start in range(0, len(rows), _GROUP):
            group = rows[start : start + _GROUP]
            self._linker.link(*group)
            with self._graph.change() as graph:
                for record in (row.record for row in group):
                    if record.forgotten:
                        graph.invalidate([record.id], self._clock())
                    elif record.superseded_by is not None:
                        at = record.valid_to or self._clock()
                        graph.supersede_note(record.id, record.superseded_by, at)

    def fill_vectors(
        self,
        limit: int | None = None,
        *,
        room: int | None = None,
        stopping: Callable[[], bool] | None = None,
    ) -> int:
        """Embed notes that have no vector yet, at most `limit`; how many got theirs.

        With `room` no more than so many characters; it ends when `stopping` becomes true.
        Waits for the model.
        """
        name, vectors = self._embedder.name, self._notes.vectors
        with suppress(EmbeddingError):
            return fill_records(self._backlog, vectors, name, limit, room=room, stopping=stopping)[
                0
            ]
        return 0

    def _find_project(self, project: str | None) -> str | None:
        return None if project is None else self._projects.find(project).id

    def _keep(
        self, kind: NoteRecordKind, note_kind: NoteKind, new: NewMemory
    ) -> tuple[NoteRow, tuple[str, ...]]:
        from anaphora.store.records.rules import draft_memory, put
        from anaphora.store.records.vectors import TextToEmbed

        new, redacted_kinds = without_secrets(checked(new))
        # Records of notes have the note's kind where memories have their type.
        draft = draft_memory(replace(new, type=cast("Any", note_kind)), self._clock(), self._ids())
        if new.supersedes is not None:
            superseded_note = self._notes.get(new.supersedes)
            if superseded_note.kind != kind or superseded_note.record.forgotten:
                raise NotFound(kind, new.supersedes)
        with self._notes.change(kind) as work:
            put_result = put(work, draft, self._ids)
        row = self._notes.get(put_result.id)
        if new.supersedes is not None and new.supersedes != put_result.id:
            with self._graph.change() as graph:
                graph.supersede_note(new.supersedes, put_result.id, row.record.valid_from)
        self._linker.link(row)
        if len(row.record.text) <= _INLINE and self._embedder.ready(0):
            # Keywords find the note until `fill_vectors` embeds it.
            with suppress(EmbeddingError):
                self._backlog.attach([TextToEmbed(row.record.id, row.record.text)])
        return row, redacted_kinds

    def _put_vectors(self, embedded: Sequence[tuple[TextToEmbed, Vectors]]) -> int:
        from anaphora.store.records.vectors import vector_rows

        rows = vector_rows((text.record_id, text.text, vectors) for text, vectors in embedded)
        count = self._notes.vectors.put(self._embedder.name, rows)
        self._follow()
        return count


_SOURCE, _NAMED, _WRITTEN = 1.0, 0.8, 0.7
ATTACHED: Final[tuple[EntityType, ...]] = (
    "module", "file", "symbol", "package", "command", "config", "doc",
)  # fmt: skip
"""The kinds of entity that a note can concern."""

# A name that more things than this go by does not say which one is meant.
_AMBIGUOUS = 3
_MOST_NAMES = 64
_TITLE = 80
_TICKED = re.compile(r"`([^`\n]{1,200})`")
# Words with a slash in them, or with an ending as files have it.
_PATH = re.compile(r"(?<![\w/.@:-])(?:\.{0,2}/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.?[\w+-]+/?")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_LINE = re.compile(r"(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)$")


def mentioned(
    text: str, *, source: str | None = None, tags: Iterable[str] = (), subject: str | None = None
) -> dict[str, float]:
    """The names in a note and how much each counts, the strongest first."""
    about = (subject, *_find_written(subject)) if subject else ()
    strengths: dict[str, float] = {}
    for strength, names in (
        (_SOURCE, (source,) if source else ()),
        (_NAMED, (*tags, *about)),
        (_WRITTEN, _find_written(text)),
    ):
        for name in names:
            clean = _LINE.sub("", name.strip()).removesuffix("()").removeprefix("./")
            if len(clean) > 1:
                # What counts most comes first.
                strengths.setdefault(clean, strength)
    return dict(itertools.islice(strengths.items(), _MOST_NAMES))


def _find_written(text: str) -> Iterator[str]:
    for match in _TICKED.finditer(text):
        yield match[1]
    for match in _PATH.finditer(text):
        word = match[0].rstrip(".,;:!?")
        if "/" in word.strip("/") or _ENDING.search(word) or word.endswith("/"):
            yield word


@dataclass(frozen=True, slots=True)
class NoteLinker:
    """Links the notes of one namespace to the entities that they name.

    `clock` gives the present, aware; `ids` new record ids that rise.
    """

    graph: Graph
    notes: Notes
    clock: Callable[[], datetime]
    ids: Callable[[], str]

    def link(self, *notes: NoteRow) -> int:
        """Link notes in one change; what they named and name no longer is closed.

        Returns how many links.
        """
        linked_notes = [(note, self._find_links(note)) for note in notes]
        entities = self.graph.entities_of_notes(note.record.id for note in notes)
        # A note that never named an entity does not belong in the graph.
        to_link = [
            (note, links) for note, links in linked_notes if links or note.record.id in entities
        ]
        if not to_link:
            return 0
        with self.graph.change() as work:
            for note, links in to_link:
                kind: EntityType = "diary" if note.kind == "diary" else "memory"
                first_line = note.record.text.strip().partition("\n")[0]
                node = (
                    note.record.id,
                    kind,
                    (first_line if len(first_line) <= _TITLE else first_line[: _TITLE - 1] + "…"),
                )
                work.link_note(node, links, now=self.clock(), ids=self.ids)
        return sum(len(links) for _, links in to_link)

    def link_all(self, project: str | None = None) -> int:
        """Link every current note about this project, or about all of them, anew."""
        last_seq, total = 0, 0
        while notes := self.notes.changed_since(last_seq):
            last_seq = notes[-1].record.seq
            current = [
                note
                for note in notes
                if note.record.valid_to is None
                and not note.record.forgotten
                and (project is None or note.project in (None, project))
            ]
            total += self.link(*current)
        return total

    def _find_links(self, note: NoteRow) -> list[NoteLink]:
        record = note.record
        names = mentioned(
            record.text,
            source=record.sources[0] if record.sources else None,
            tags=record.tags,
            subject=note.subject,
        )
        entities = self.graph.entities_named(
            names, project=note.project, kinds=ATTACHED, limit=_AMBIGUOUS + 1
        )
        predicate: Predicate = "applies_to" if note.type == "constraint" else "concerns"
        links: dict[str, NoteLink] = {}
        for name, strength in names.items():
            # Entities of exactly this name are meant alone, unless too many share it.
            rows = entities.get(name, ())
            exact = tuple(row for row in rows if row.name == name.rstrip("/"))
            if exact and len(exact) <= _AMBIGUOUS:
                matches = exact
            else:
                matches = rows if len(rows) <= _AMBIGUOUS else ()
            for entity in matches:
                if entity.id not in links:
                    links[entity.id] = NoteLink(entity.id, predicate, strength, name)
        return list(links.values())
