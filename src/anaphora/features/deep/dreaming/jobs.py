"""The cycle over the jobs of ended sessions: the extractions, then a dream.

A job whose model fails stays for the next time, three times in all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anaphora.errors import ModelError, NotFound
from anaphora.features.deep.dreaming.dream import Dreamer
from anaphora.features.deep.dreaming.extract import FactExtractor
from anaphora.features.deep.recall import DeepRecall
from anaphora.features.deep.tools import Models
from anaphora.features.deep.values import Budget, DreamReport, Extracted
from anaphora.store.jobs import JobQueue
from anaphora.values.conversations import Degraded


@dataclass(frozen=True, slots=True)
class DreamCycle:
    """Runs the queued jobs of one namespace."""

    recall: DeepRecall
    extract: FactExtractor
    dream: Dreamer
    jobs: JobQueue

    def run(self, *, model: bool, budget: Budget | None) -> DreamReport:
        """Queued extractions, then one cycle of dreaming, with the model if there is one."""
        return self._cycle(self.recall.models() if model else None, budget)

    def run_jobs(self) -> DreamReport:
        """Run the jobs of ended sessions: extractions, then a dream that asks no model."""
        if not self.jobs.list_pending():
            return DreamReport()
        return self._cycle(self.recall.models(), queued=True)

    def _cycle(
        self, models: Models | None, budget: Budget | None = None, *, queued: bool = False
    ) -> DreamReport:
        """Extractions, and a dream; with `queued` only a queued dream, without a model."""
        extractions: list[Extracted] = []
        degradations: list[Degraded] = []
        model = models.sub if models is not None else None
        for job in self.jobs.list_pending("extract") if model is not None else ():
            name = job["conversation_id"] or ""
            try:
                extraction = self.extract.extract(name, model)
            except NotFound:
                # The conversation was deleted: there is nothing left to do.
                self.jobs.remove(job)
                continue
            except ModelError as error:
                reason: str | None = str(error)
            else:
                extractions.append(extraction)
                reason = f"its reply was {extraction.skipped}" if extraction.unread else None
            if reason is None:
                self.jobs.remove(job)
            else:
                degradations.append(Degraded("model", f"{name}: {reason}"))
                self.jobs.retry_later(job)
        dreams = self.jobs.list_pending("dream")
        report = DreamReport(extracted=tuple(extractions))
        if dreams or not queued:
            report = self.dream.cycle(None if queued else models, budget, extractions)
        for job in dreams:
            self.jobs.remove(job)
        return replace(report, degraded=(*report.degraded, *degradations))
