"""The context lane: from a focus to a compact package of what a task needs to know.

In: one or several focus statements, a budget of tokens. Out: a `RecallPackage`: where to look
first and why, words of the project, notes, relations, history where it is asked for, and how far to
trust it. Everything in it stands in truth. It never changes truth, and a failing embedder never
makes it raise: words answer alone, and the package says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.errors import EmbeddingError, InvalidInput
from anaphora.recall.context.candidates import Ranker
from anaphora.recall.context.focus import Reading, read_focus
from anaphora.recall.context.package import Material, assemble, check_budget
from anaphora.store.codecs import to_micros
from anaphora.values.conversations import FINISH_VECTORS, Degraded
from anaphora.values.projects import Quality, RecallPackage

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.state import SectionQuery
    from anaphora.recall.context.candidates import Asked, Found
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.graph_rows import EntityRow
    from anaphora.store.projects.notes import Notes
    from anaphora.store.projects.store import Projects

MODEL_PATIENCE: Final = 10.0
"""Seconds that a focus waits for a model that is still loading before words answer alone."""

Refresh = Callable[[str], tuple[Degraded, ...]]
"""Brings a project (by its id) in line with its files; what it could not do."""


@dataclass(frozen=True, slots=True)
class ContextRecall:
    """Answers focus statements from the projects and notes of one namespace."""

    projects: Projects
    graph: Graph
    notes: Notes
    index: SectionIndex
    embedder: EmbedderService
    clock: Callable[[], datetime]
    refresh: Refresh | None = None
    ranker: Ranker = field(default_factory=Ranker)

    def recall(
        self,
        focus: str | Sequence[str],
        *,
        project: str | None = None,
        budget: int = 2000,
        include_sources: bool = False,
    ) -> RecallPackage:
        """The package for `focus`, of all projects or of one (its id, name or root).

        Its text takes at most `budget` tokens. `include_sources` brings signals and the full lists
        of relations and history. Raises `InvalidInput` for bad arguments, `NotFound` for a project.
        """
        check_budget(budget)
        statements = _statements(focus)
        names, degraded = self._scope(project)
        reading = read_focus(statements)
        degraded.extend(reading.degraded)
        if not reading:
            return _empty(reading, budget, names, degraded, _NO_TERMS)
        asked, wanted = self._asked(reading, names, degraded, sources=include_sources)
        if project is None:
            # Notes of a project that was removed are still somebody's notes.
            wanted = replace(wanted, projects=None)
        return self._answer(asked, wanted, budget, degraded)

    def _scope(self, project: str | None) -> tuple[dict[str, str], list[Degraded]]:
        """The projects asked about, id to name, brought in line with their files."""
        rows = self.projects.rows() if project is None else (self.projects.find(project),)
        degraded: list[Degraded] = []
        if self.refresh is not None:
            for row in rows:
                degraded.extend(self.refresh(row.id))
        return {row.id: row.name for row in rows}, degraded

    def _asked(
        self, reading: Reading, names: Mapping[str, str], degraded: list[Degraded], *, sources: bool
    ) -> tuple[Asked, SectionQuery]:
        from anaphora.index.sections.state import SectionQuery
        from anaphora.recall.context.candidates import CANDIDATES, Asked

        vector = None
        try:
            vector = self.embedder.query(reading.lead, timeout=MODEL_PATIENCE)
        except EmbeddingError as error:
            degraded.append(Degraded("embeddings", f"words answered alone: {error}"))
        now = to_micros(self.clock())
        assert now is not None
        wanted = SectionQuery(
            weights=reading.weights,
            limit=CANDIDATES,
            now=now,
            vector=vector,
            projects=frozenset(names),
        )
        return Asked(reading, names, sources), wanted

    def _answer(
        self, asked: Asked, wanted: SectionQuery, budget: int, degraded: list[Degraded]
    ) -> RecallPackage:
        from anaphora.recall.context.candidates import search

        found = search(self.index, self.notes, wanted)
        degraded.extend(found.candidates.degraded)
        if found.candidates.pending:
            reason = f"{found.candidates.pending} parts have no vector yet: words alone find them"
            degraded.append(Degraded("embeddings", f"{reason}; {FINISH_VECTORS}"))
        if found.rung == "none":
            what = _NOTHING if asked.projects else _NO_PROJECT
            return _empty(asked.reading, budget, asked.projects, degraded, what)
        if found.rung != "words":
            degraded.append(Degraded("word index", _RUNGS[found.rung]))
        material = self._material(asked, found, wanted)
        return assemble(replace(material, degraded=tuple(degraded)), budget)

    def _material(self, asked: Asked, found: Found, wanted: SectionQuery) -> Material:
        from anaphora.recall.context.evidence import history, memories, named_entities, nearby
        from anaphora.recall.context.package import brief_of
        from anaphora.recall.context.targets import named_modules, targets

        named = named_entities(asked, self.graph)
        defined = self._defined(asked, named)
        ranked, quality = self.ranker.rank(asked, found, wanted.now, defined)
        table = found.candidates.table
        of_notes = found.candidates.rows[table.file[found.candidates.rows] < 0]
        notes = self.notes.many(table.ids[row] for row in of_notes.tolist())
        near = nearby(asked, ranked, named, self.graph, self.notes)
        modules = named_modules(asked, ranked, self.index)
        first = targets(asked, ranked, self.index, notes, near.files, modules)
        stores = (self.index, self.notes, self.graph, self.projects)
        past = replace(wanted, past=True, limit=20, vector=None)
        items = memories(asked, ranked, self.index, notes, near.tied, modules)
        before = history(asked, ranked, near, past, stores)
        return Material(
            focus=asked.focus,
            quality=quality,
            brief=brief_of(quality, ranked, first, items, before),
            targets=first,
            memories=items,
            graph=near.relations,
            history=before,
            projects=tuple(asked.projects.values()),
            sources=asked.sources,
        )

    def _defined(
        self, asked: Asked, named: Mapping[str, Sequence[EntityRow]]
    ) -> dict[tuple[str, str], float]:
        """Files that define what the focus names: a name of several counts less for each."""
        weights = {one.text.rstrip("()"): one.weight for one in asked.reading.mentions}
        found: dict[tuple[str, str], float] = {}
        for name, rows in named.items():
            symbols = [row for row in rows if row.kind == "symbol" and row.file and row.project]
            for row in symbols:
                key = (row.project or "", self.index.path_of(row.file or ""))
                sure = weights.get(name, 0.0) * len(symbols) ** -0.5
                found[key] = max(found.get(key, 0.0), sure)
        return found


_NO_TERMS: Final = "the focus has no words that can be looked up."
_NOTHING: Final = "nothing in the project or its notes has a word in common with the focus."
_NO_PROJECT: Final = "no project was indexed, and no note has a word in common with the focus."
_RUNGS: Final[Mapping[str, str]] = {
    "scan": "it had nothing: parts of words were looked for in the files' sections",
    "notes": "it had nothing: parts of words were looked for in the notes",
}


def _empty(
    reading: Reading,
    budget: int,
    names: Mapping[str, str],
    degraded: Sequence[Degraded],
    reason: str,
) -> RecallPackage:
    quality: Quality = "weak"
    material = Material(
        focus=reading.focus,
        quality=quality,
        brief=(f"Weak: {reason}",),
        projects=tuple(names.values()),
        degraded=tuple(degraded),
    )
    return assemble(material, budget)


def _statements(focus: object) -> tuple[str, ...]:
    if isinstance(focus, str):
        return (focus,)
    if isinstance(focus, Sequence) and all(isinstance(one, str) for one in focus):
        return tuple(focus)
    raise InvalidInput("focus", focus, "expected a string or a list of strings")
