"""Deep recall put together: what a namespace has of it.

In: the parts of a namespace, and the home's `DeepTools`. Out: `DeepParts`. Models and sandbox are
made when they are first used.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.deep.budget import check_budget
from anaphora.deep.dreaming.dream import Dream
from anaphora.deep.dreaming.extract import Extract
from anaphora.deep.dreaming.gaps import Gaps
from anaphora.deep.dreaming.jobs import SessionJobs
from anaphora.deep.evidence.scoped import NamespaceEvidence
from anaphora.deep.kept.answers import AnswerCache
from anaphora.deep.kept.traces import Traces
from anaphora.deep.recall import DeepRecall
from anaphora.deep.tools import DeepTools, Models
from anaphora.ingest.linking import Relink
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, DreamReport, Extracted

if TYPE_CHECKING:
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.ingest.memories import Remember
    from anaphora.store.deep_rows import DeepRows
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors


@dataclass(frozen=True, slots=True)
class DeepParts:
    """Deep recall in one namespace."""

    recall: DeepRecall
    gaps: Gaps
    traces: Traces
    extract: Extract
    dream: Dream
    jobs: SessionJobs

    def night(self, *, model: bool, budget: Budget | None) -> DreamReport:
        """Queued extractions, then one cycle of dreaming, with the model if there is one."""
        check_budget(budget)
        models = self.recall.models() if model else None
        done, failed = self._extracted(models)
        report = self.dream.cycle(models, budget, done)
        for job in self.jobs.pending("dream"):
            self.jobs.done(job)
        return replace(report, degraded=(*report.degraded, *failed))

    def run_jobs(self) -> DreamReport:
        """What ended sessions have queued: extractions, then a dream that asks no model."""
        if not self.jobs.pending():
            return DreamReport()
        done, failed = self._extracted(self.recall.models())
        dreams = self.jobs.pending("dream")
        report = self.dream.cycle(None, None, done) if dreams else DreamReport(extracted=done)
        for job in dreams:
            self.jobs.done(job)
        return replace(report, degraded=(*report.degraded, *failed))

    def _extracted(
        self, models: Models | None
    ) -> tuple[tuple[Extracted, ...], tuple[Degraded, ...]]:
        if models is None:
            return (), ()
        sub = models.sub
        return self.jobs.drain(lambda one: self.extract.extract(one, sub))


def open_deep(
    lane: NamespaceEvidence,
    rows: DeepRows,
    tools: DeepTools,
    remember: Remember,
    memories: tuple[Records, RecordVectors, MemoryIndex, str],
    *,
    clock: Callable[[], datetime],
    ids: Callable[[], str],
    timer: Callable[[], float] = time.monotonic,
) -> DeepParts:
    """Wire deep recall. `memories` are records, vectors, index and the embedder's name."""
    records, vectors, index, embedder = memories
    gaps = Gaps(rows, clock=clock, ids=ids)
    traces = Traces(rows, clock)
    recall = DeepRecall(
        lane=lane,
        rows=rows,
        answers=AnswerCache(rows, lane, clock),
        gaps=gaps,
        traces=traces,
        models=tools.models,
        engine=tools.engine,
        ids=ids,
        timer=timer,
    )
    relink = Relink(records, vectors, embedder, index.neighbours)
    return DeepParts(
        recall=recall,
        gaps=gaps,
        traces=traces,
        extract=Extract(lane.conversations, remember, rows, clock, timer),
        dream=Dream(recall, gaps, remember, relink, remember.fill_vectors, timer),
        jobs=SessionJobs(rows, clock=clock, ids=ids),
    )
