"""Deep recall put together: what a home shares (models, sandbox), and what a namespace has.

In: settings and the parts of a namespace. Out: `DeepTools` and `DeepParts`. Models and sandbox are
made when they are first used: whoever never asks a deep question pays nothing for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.config import Settings
from anaphora.deep.answers import AnswerCache
from anaphora.deep.dream import Dream
from anaphora.deep.evidence import NamespaceEvidence
from anaphora.deep.extract import Extract
from anaphora.deep.gaps import Gaps
from anaphora.deep.jobs import SessionJobs
from anaphora.deep.recall import DeepRecall, Models
from anaphora.deep.traces import Traces
from anaphora.deep_values import Budget, DreamReport, Extracted
from anaphora.intake.relinking import Relink
from anaphora.values import Degraded

if TYPE_CHECKING:
    from anaphora.deep.models import ModelRole
    from anaphora.deep.sandbox.base import Engine
    from anaphora.index.memories import MemoryIndex
    from anaphora.intake.remember import Remember
    from anaphora.store.deep_rows import DeepRows
    from anaphora.store.records import Records
    from anaphora.store.vectors import RecordVectors

__all__ = ["DeepParts", "DeepTools", "open_deep"]


class DeepTools:
    """The models and the sandbox of a home. Safe to share between threads.

    `code` and `sub` are models that the caller made; without them `settings` says which.
    """

    def __init__(
        self,
        settings: Settings,
        code: ModelRole | None = None,
        sub: ModelRole | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._settings = settings
        self._given = code, sub
        self._engine = engine
        self._models: Models | None = None
        self._known = False
        self._own: list[ModelRole] = []
        self._lock = threading.Lock()

    def models(self) -> Models | None:
        """The models of both roles; None where none is configured. Raises `NoModel`."""
        with self._lock:
            if not self._known:
                self._models = self._opened()
                self._known = True
            return self._models

    def engine(self) -> Engine:
        """The sandbox. Raises `MissingExtra`."""
        with self._lock:
            if self._engine is None:
                from anaphora.deep.sandbox.monty import MontyEngine

                self._engine = MontyEngine()
            return self._engine

    def close(self) -> None:
        """End the connections of the models that were made here."""
        with self._lock:
            own, self._own = self._own, []
        for model in own:
            close = getattr(model, "close", None)
            if close is not None:
                close()

    def _opened(self) -> Models | None:
        code, sub = self._given
        if code is None or (sub is None and self._settings.sub_model is not None):
            from anaphora.deep.remote import open_models

            found = open_models(self._settings)
            if found is not None:
                # One of the two may be the caller's own, or both may be the same.
                self._own = list(dict.fromkeys(found))
                code, sub = code or found[0], sub or found[1]
        if code is None:
            return None
        return Models(code, sub or code)


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
