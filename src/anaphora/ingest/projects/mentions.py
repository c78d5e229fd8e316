"""What a note is about: the files, symbols and other entities that it names.

In: a note. Out: relations "concerns" ("applies_to" for a constraint) in the graph. Names count by
where they stand: the note's source 1.0, its tags and its subject 0.8, back-ticked and path-like
words of its text 0.7 (the strengths of the seed's own graph). A name that many things go by says
nothing and is left out. It reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.store.projects.graph_rows import NoteLink
from anaphora.store.projects.notes import NoteRow
from anaphora.values.projects import EntityType, Predicate

if TYPE_CHECKING:
    from anaphora.store.projects.graph import EntityRow, Graph
    from anaphora.store.projects.notes import Notes

SOURCE, NAMED, WRITTEN = 1.0, 0.8, 0.7
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
    found: dict[str, float] = {}
    for name, strength in _names(text, source, tags, subject):
        clean = _LINE.sub("", name.strip()).removesuffix("()").removeprefix("./")
        if len(clean) > 1 and found.get(clean, 0.0) < strength:
            found[clean] = strength
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return dict(ordered[:_MOST_NAMES])


def _names(
    text: str, source: str | None, tags: Iterable[str], subject: str | None
) -> Iterator[tuple[str, float]]:
    if source:
        yield source, SOURCE
    for tag in tags:
        yield tag, NAMED
    if subject:
        yield subject, NAMED
        for name in _written(subject):
            yield name, NAMED
    for name in _written(text):
        yield name, WRITTEN


def _written(text: str) -> Iterator[str]:
    for found in _TICKED.finditer(text):
        yield found[1]
    for found in _PATH.finditer(text):
        word = found[0].rstrip(".,;:!?")
        if "/" in word.strip("/") or _ENDING.search(word) or word.endswith("/"):
            yield word


class NoteLinker:
    """Links the notes of one namespace to the entities that they name."""

    def __init__(
        self,
        graph: Graph,
        notes: Notes,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
    ) -> None:
        self._graph = graph
        self._notes = notes
        self._clock = clock
        self._ids = ids

    def link(self, note: NoteRow) -> int:
        """Link one note; what it named and names no longer is closed. Returns how many links."""
        return self._write([(note, self._links(note))])

    def link_many(self, notes: Iterable[NoteRow]) -> int:
        """Link these notes in one change. Returns how many links."""
        return self._write([(note, self._links(note)) for note in notes])

    def link_all(self, project: str | None = None) -> int:
        """Link every current note about this project, or about all of them, anew."""
        before, total = 0, 0
        while notes := self._notes.notes_since(before):
            before = notes[-1].record.seq
            current = [
                note
                for note in notes
                if note.record.valid_to is None
                and not note.record.forgotten
                and (project is None or note.project in (None, project))
            ]
            total += self._write([(note, self._links(note)) for note in current])
        return total

    def _write(self, linked: list[tuple[NoteRow, list[NoteLink]]]) -> int:
        known = self._graph.entities_of_notes(note.record.id for note, _ in linked)
        # A note that names nothing and never did has no place in the graph.
        wanted = [(note, links) for note, links in linked if links or note.record.id in known]
        if not wanted:
            return 0
        with self._graph.change() as work:
            for note, links in wanted:
                kind: EntityType = "diary" if note.kind == "diary" else "memory"
                own = (note.record.id, kind, _title(note.record.text))
                work.link_note(own, links, now=self._clock(), ids=self._ids)
        return sum(len(links) for _, links in wanted)

    def _links(self, note: NoteRow) -> list[NoteLink]:
        record = note.record
        names = mentioned(
            record.text,
            source=record.sources[0] if record.sources else None,
            tags=record.tags,
            subject=note.subject,
        )
        found = self._graph.entities_named(
            names, project=note.project, kinds=ATTACHED, limit=_AMBIGUOUS + 1
        )
        predicate: Predicate = "applies_to" if note.type == "constraint" else "concerns"
        links: dict[str, NoteLink] = {}
        for name, strength in names.items():
            for entity in _meant(name, found):
                if entity.id not in links:
                    links[entity.id] = NoteLink(entity.id, predicate, strength, name)
        return list(links.values())


def _meant(name: str, found: Mapping[str, tuple[EntityRow, ...]]) -> tuple[EntityRow, ...]:
    """The entities that a name means: that of exactly this name alone, or a few that share it."""
    rows = found.get(name, ())
    exact = tuple(row for row in rows if row.name == name.rstrip("/"))
    if exact and len(exact) <= _AMBIGUOUS:
        return exact
    return rows if len(rows) <= _AMBIGUOUS else ()


def _title(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _TITLE else first[: _TITLE - 1] + "…"
