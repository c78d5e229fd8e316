"""Measures how well the files that a task touches are found in a project.

In: a file or folder of projects with known answers (`project_sets`). Out: `ProjectReport`; with
`details`, a file with one JSON line a question. Compared are BM25 over whole files, with the
product's own analyser, and the primary targets of recall packages (`project_road`), ten at most.
Every question is asked twice: as it was written, and with the wanted files' own names taken out.

Bug reports ask for `.py` files. The whole project is indexed all the same; targets of other kinds
are passed over in "recall package" and count as places in "package, all files". BM25 is over the
`.py` files alone.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from anaphora.core.analyser import analyse, query_terms
from anaphora.core.config import load_settings
from anaphora.core.progress import Progress
from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from anaphora.errors import UnknownFormat
from anaphora.values.conversations import ImportProblem
from bench.conversations.report import latency
from bench.project.report import (
    ALL_FILES,
    FORMS,
    PACKAGE,
    PLAIN,
    ProjectOutcome,
    ProjectReport,
    report_of,
)
from bench.project.road import ProjectRoad, Recalled
from bench.project.sets import (
    ProjectQuestion,
    ProjectSet,
    read_project_sets,
    stripped,
)
from bench.timed import TimedEmbedder

_K1, _B = 1.2, 0.75


def run_project_benchmark(
    path: Path | str,
    *,
    embedder: str | Embedder | None = None,
    details: Path | str | None = None,
    progress: Progress | None = None,
) -> ProjectReport:
    """Measure recall of a project's files.

    `embedder` is a name or an instance, by default the configured one; `progress` is called with
    (what, done, total). Raises `InvalidInput` for a path that is not there and `UnknownFormat`
    where nothing at it is of a form that is read.
    """
    with ExitStack() as stack:
        out = stack.enter_context(Path(details).open("w", encoding="utf-8")) if details else None
        chosen = embedder or load_settings(Path()).embedder
        run = _Run(TimedEmbedder(spec_for(chosen).load()), out, progress)
        for one in read_project_sets(path):
            if isinstance(one, ImportProblem):
                run.problems.append(one)
            elif one.questions:
                run.one(one)
        if not run.outcomes:
            why = run.problems[0].reason if run.problems else "no question that can be answered"
            raise UnknownFormat("path", str(path), why)
        return run.report()


@dataclass(slots=True)
class _Run:
    """The state of a run while it goes. `recall` and `bare` are seconds of whole questions, and of
    those without the embedding of their query."""

    embedder: TimedEmbedder
    out: IO[str] | None
    progress: Progress | None
    outcomes: list[ProjectOutcome] = field(default_factory=list)
    problems: list[ImportProblem] = field(default_factory=list)
    files: int = 0
    sections: int = 0
    stripped: int = 0
    index_seconds: float = 0.0
    tokens: list[int] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    def one(self, project: ProjectSet) -> None:
        """Index a project and ask everything of it."""
        began = time.perf_counter()
        with closing(ProjectRoad(project.files, self.embedder)) as road:
            self.index_seconds += time.perf_counter() - began
            self.files += road.indexed.files
            self.sections += road.indexed.sections
            self.problems += [
                ImportProblem(project.repo, one.path, f"not indexed: {one.reason}")
                for one in road.indexed.skipped
            ]
            whole = _WholeFiles({p: t for p, t in project.files.items() if project.asks_for(p)})
            for done, question in enumerate(project.questions, 1):
                self._ask(project, question, road, whole)
                if self.progress is not None:
                    self.progress(project.repo, done, len(project.questions))

    def _ask(
        self, project: ProjectSet, question: ProjectQuestion, road: ProjectRoad, whole: _WholeFiles
    ) -> None:
        bare = stripped(question)
        self.stripped += bare != question.text
        found = self._recalled(road, question.text)
        for form, text in zip(FORMS, (question.text, bare), strict=True):
            if text != question.text:
                found = self._recalled(road, text)
            some = replace(found, paths=tuple(filter(project.asks_for, found.paths)))
            plain = Recalled(whole.ask(text), "weak", 0.0, 0)
            rankings = {PLAIN: plain, PACKAGE: some}
            if project.kind == "issues":
                rankings[ALL_FILES] = found
            for ranking, one in rankings.items():
                self._keep(project, question, (ranking, form), one)

    def _recalled(self, road: ProjectRoad, text: str) -> Recalled:
        embedding = self.embedder.query_seconds
        found = road.ask(text)
        self.recall.append(found.seconds)
        self.bare.append(found.seconds - (self.embedder.query_seconds - embedding))
        self.tokens.append(found.tokens)
        return found

    def _keep(
        self,
        project: ProjectSet,
        question: ProjectQuestion,
        asked: tuple[str, str],
        found: Recalled,
    ) -> None:
        outcome = ProjectOutcome(
            project.kind,
            project.repo,
            question.id,
            *asked,
            found.paths,
            question.wanted,
            found.quality,
        )
        self.outcomes.append(outcome)
        if self.out is not None:
            self.out.write(json.dumps(_line(outcome, question), ensure_ascii=False) + "\n")

    def report(self) -> ProjectReport:
        """What was found."""
        rows, quality = report_of(self.outcomes)
        return ProjectReport(
            embedder=self.embedder.name,
            files=self.files,
            sections=self.sections,
            stripped=self.stripped,
            rows=rows,
            quality=quality,
            recall=latency(self.recall),
            recall_without_embedding=latency(self.bare),
            tokens=round(sum(self.tokens) / max(1, len(self.tokens))),
            index_seconds=self.index_seconds,
            problems=tuple(self.problems),
        )


def _line(outcome: ProjectOutcome, question: ProjectQuestion) -> dict[str, Any]:
    return {
        "kind": outcome.kind,
        "repo": outcome.repo,
        "id": outcome.question,
        "query": question.text,
        "ranking": outcome.ranking,
        "form": outcome.form,
        "wanted": sorted(outcome.wanted),
        "place": outcome.place,
        "quality": outcome.quality,
        "paths": outcome.paths[:10],
    }


class _WholeFiles:
    """Plain BM25 over whole files, to compare with: k1 1.2, b 0.75."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._paths = list(files)
        counts = [Counter(analyse(text)) for text in files.values()]
        self._lengths = [sum(count.values()) for count in counts]
        self._average = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for number, count in enumerate(counts):
            for term, occurrences in count.items():
                self._postings.setdefault(term, []).append((number, occurrences))

    def ask(self, question: str) -> tuple[str, ...]:
        """The paths that match, best first."""
        scores: dict[int, float] = {}
        for term in query_terms(question):
            found = self._postings.get(term, [])
            idf = math.log(1 + (len(self._paths) - len(found) + 0.5) / (len(found) + 0.5))
            for number, occurrences in found:
                norm = _K1 * (1 - _B + _B * self._lengths[number] / self._average)
                part = idf * (_K1 + 1) * occurrences / (occurrences + norm)
                scores[number] = scores.get(number, 0.0) + part
        order = sorted(scores, key=lambda number: (-scores[number], number))
        return tuple(self._paths[number] for number in order)
