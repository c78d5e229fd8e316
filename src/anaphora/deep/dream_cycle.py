"""What runs between sessions: the extractions that ended sessions queued, then a dream."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anaphora.deep.budget import check_budget
from anaphora.deep.dreaming.dream import Dream
from anaphora.deep.dreaming.extract import Extract
from anaphora.deep.dreaming.jobs import SessionJobs
from anaphora.deep.recall import DeepRecall
from anaphora.deep.tools import Models
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, DreamReport, Extracted


@dataclass(frozen=True, slots=True)
class DreamCycle:
    """Runs what is queued in one namespace."""

    recall: DeepRecall
    extract: Extract
    dream: Dream
    jobs: SessionJobs

    def run(self, *, model: bool, budget: Budget | None) -> DreamReport:
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
