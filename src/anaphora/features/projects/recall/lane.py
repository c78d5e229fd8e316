"""The context lane: from a focus to a compact package of what a task needs to know.

`ContextRecall._answer` is the walk: `focus` reads, `candidates` searches and ranks, `evidence` and
`targets` choose, `package` fills the budget. It changes no record, and a failing embedder never
makes it raise: words answer alone, and the package says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.calls.limits import check_cancelled, time_is_up
from anaphora.features.projects.index.state import SectionCandidates, SectionQuery
from anaphora.features.projects.ranking.scores import quality_of
from anaphora.features.projects.recall.candidates import (
    CANDIDATES,
    FileNames,
    ProjectReader,
    QuestionContext,
    rank_candidates,
    search,
)
from anaphora.features.projects.recall.evidence import (
    history,
    memories,
    memory_section_keys,
    named_entities,
    nearby,
)
from anaphora.features.projects.recall.focus import read_focus
from anaphora.features.projects.recall.package import assemble, brief_lines
from anaphora.features.projects.recall.targets import named_modules, target_section_keys, targets
from anaphora.features.projects.values import RecallPackage
from anaphora.recall.packing import check_budget
from anaphora.recall.query import query_vector
from anaphora.store.codecs import to_micros
from anaphora.values.conversations import FINISH_VECTORS, Degraded

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.notes import Notes
    from anaphora.features.projects.store.store import Projects

Refresh = Callable[[str], tuple[Degraded, ...]]
"""Brings a project (by its id) in line with its files; what it could not do."""

Fill = Callable[[Sequence[str]], None]
"""Begins to make the vectors that are lacking, those of these sections (ids) first."""


@dataclass(frozen=True, slots=True)
class ContextRecall:
    """Answers focus statements from the projects and notes of one namespace.

    `refresh` takes in what changed of a project; `fill` begins to make vectors that are lacking.
    """

    projects: Projects
    graph: Graph
    notes: Notes
    index: SectionIndex
    embedder: EmbedderService
    clock: Callable[[], datetime]
    refresh: Refresh | None = None
    fill: Fill | None = None
    _names: FileNames = field(default_factory=lambda: FileNames(1))

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
        rows = self.projects.rows() if project is None else (self.projects.find(project),)
        degradations: list[Degraded] = []
        for row in rows:
            if self.refresh is None:
                break
            if time_is_up():
                reason = "there was no time to look which files have changed"
                degradations.append(Degraded("project", reason))
                break
            degradations.extend(self.refresh(row.id))
        names = {row.id: row.name for row in rows}
        reading = read_focus(focus)
        degradations.extend(reading.degraded)
        reader = ProjectReader(self.index, self.notes, self.graph, self.projects)
        question = QuestionContext(reading, names, reader, include_sources)
        if not reading:
            return _make_empty(question, budget, degradations, _NO_TERMS)
        vector = query_vector(self.embedder, reading.lead, degradations)
        query = SectionQuery(
            weights=reading.weights,
            limit=CANDIDATES,
            now=to_micros(self.clock()),
            vector=vector,
            # Notes of a project that was removed are still looked for.
            projects=None if project is None else frozenset(names),
        )
        return self._answer(question, query, budget, degradations)

    def _answer(
        self,
        question: QuestionContext,
        query: SectionQuery,
        budget: int,
        degraded: list[Degraded],
    ) -> RecallPackage:
        candidates, rung = search(question.reader, query)
        if candidates.cosine is not None:
            candidates = replace(
                candidates, cosine=self.embedder.calibration.asked.apply(candidates.cosine)
            )
        if candidates.pending:
            reason = (
                f"{candidates.pending} sections and notes have no vector yet and are found by "
                "words only"
            )
            degraded.append(Degraded("embeddings", f"{reason}; {FINISH_VECTORS}"))
            if self.fill is not None:
                self.fill(_list_without_vectors(candidates))
        if rung == "none":
            reason_text = _NOTHING if question.projects else _NO_PROJECT
            return _make_empty(question, budget, degraded, reason_text)
        if rung != "words":
            degraded.append(Degraded("word index", _RUNGS[rung]))
        check_cancelled()
        entity_names = named_entities(question)
        ranked_candidates = rank_candidates(
            self._names, question, candidates, query.now, entity_names
        )
        # What only parts of words have found is a lead at best.
        terms = len(question.reading.weights)
        quality = quality_of(ranked_candidates.targets, terms) if rung == "words" else "weak"
        nearby_evidence = nearby(ranked_candidates, entity_names)
        # Read at once what the stages below choose among.
        question.reader.notes((*ranked_candidates.note_keys(), *nearby_evidence.notes))
        question.reader.sections(
            (*target_section_keys(ranked_candidates), *memory_section_keys(ranked_candidates))
        )
        modules = named_modules(ranked_candidates)
        primary_targets = targets(ranked_candidates, nearby_evidence.files, modules)
        items = memories(ranked_candidates, nearby_evidence, modules)
        past_records = history(
            ranked_candidates, nearby_evidence, replace(query, past=True, limit=20, vector=None)
        )
        if not primary_targets and not items:
            # What was ranked may have been forgotten since, or be nothing that a package brings.
            quality = "weak"
        package = RecallPackage(
            brief=tuple(
                brief_lines(quality, ranked_candidates, primary_targets, items, past_records)
            ),
            primary_targets=tuple(primary_targets),
            memories=tuple(items),
            graph=nearby_evidence.relations,
            history=tuple(past_records),
            quality=quality,
            focus=question.focus,
            projects=tuple(question.projects.values()),
            degraded=tuple(degraded),
        )
        return assemble(package, budget, sources=question.sources)


_NO_TERMS: Final = "the focus has no words that can be looked up."
_NOTHING: Final = "nothing in the project or its notes has a word in common with the focus."
_NO_PROJECT: Final = "no project was indexed, and no note has a word in common with the focus."
_RUNGS: Final[Mapping[str, str]] = {
    "scan": "it had nothing: parts of words were looked for in the files' sections",
    "notes": "it had nothing: parts of words were looked for in the notes",
}


def _list_without_vectors(candidates: SectionCandidates) -> list[str]:
    """The sections among the candidates that have no vector, best first."""
    if candidates.cosine is None:
        return []
    rows = candidates.rows[np.isnan(candidates.cosine)]
    return [candidates.table.ids[row] for row in rows[candidates.table.file[rows] >= 0].tolist()]


def _make_empty(
    question: QuestionContext, budget: int, degraded: Sequence[Degraded], reason: str
) -> RecallPackage:
    package = RecallPackage(
        brief=(f"Weak: {reason}",),
        primary_targets=(),
        memories=(),
        graph=(),
        history=(),
        quality="weak",
        focus=question.focus,
        projects=tuple(question.projects.values()),
        degraded=tuple(degraded),
    )
    return assemble(package, budget)
