"""What runs between sessions: the queue that the end of a session fills, and the cycle over it.

Jobs are in truth and survive a restart; whoever has time runs them: the extractions, then a dream.
One that fails for its model stays for the next time, three times in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from anaphora.deep.budget import check_budget
from anaphora.deep.dreaming.dream import Dreamer
from anaphora.deep.dreaming.extract import FactExtractor
from anaphora.deep.recall import DeepRecall
from anaphora.deep.tools import Models
from anaphora.errors import ModelError, NotFound
from anaphora.store.codecs import to_micros
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, DreamReport, Extracted

if TYPE_CHECKING:
    from anaphora.store.deep_rows import DeepRows, Row
    from anaphora.values.deep import Extracted


TRIES: Final = 3

JobKind = Literal["extract", "dream"]


@dataclass(frozen=True, slots=True)
class Job:
    """A queued job. `conversation_id` is None for a dream."""

    id: str
    kind: str
    conversation_id: str | None
    attempts: int = 0


class JobQueue:
    """The queue of one namespace. `clock` gives aware times, `ids` new ids."""

    def __init__(
        self, rows: DeepRows, *, clock: Callable[[], datetime], ids: Callable[[], str]
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._ids = ids

    def end(self, conversation_id: str, *, extract: bool) -> tuple[Job, ...]:
        """Queue what the end of a session asks for; what is queued already is not queued twice."""
        wanted: list[tuple[JobKind, str | None]] = [("dream", None)]
        if extract:
            wanted.insert(0, ("extract", conversation_id))
        with self._rows.change() as work:
            known = {(row["kind"], row["conversation_id"]) for row in work.find("session_job")}
            fresh = [Job(self._ids(), kind, of) for kind, of in wanted if (kind, of) not in known]
            work.put("session_job", [self._row(job) for job in fresh])
        return tuple(fresh)

    def pending(self, kind: JobKind | None = None) -> tuple[Job, ...]:
        """What waits, the oldest first."""
        rows = self._rows.find("session_job")
        jobs = [Job(r["job_id"], r["kind"], r["conversation_id"], r["attempts"]) for r in rows]
        return tuple(job for job in jobs if kind is None or job.kind == kind)

    def drain(
        self, extract: Callable[[str], Extracted]
    ) -> tuple[tuple[Extracted, ...], tuple[Degraded, ...]]:
        """Run the waiting extractions; what they took, and what has failed."""
        done: list[Extracted] = []
        failed: list[Degraded] = []
        for job in self.pending("extract"):
            try:
                taken = extract(job.conversation_id or "")
            except NotFound:
                # The conversation was deleted: there is nothing left to do.
                self.done(job)
            except ModelError as error:
                failed.append(Degraded("model", f"{job.conversation_id}: {error}"))
                self._again(job)
            else:
                done.append(taken)
                if taken.unread:
                    reason = f"{job.conversation_id}: its reply was {taken.skipped}"
                    failed.append(Degraded("model", reason))
                    self._again(job)
                else:
                    self.done(job)
        return tuple(done), tuple(failed)

    def done(self, job: Job) -> None:
        """Take a job off the queue."""
        with self._rows.change() as work:
            work.drop("session_job", {"job_id": job.id})

    def _again(self, job: Job) -> None:
        if job.attempts + 1 >= TRIES:
            self.done(job)
            return
        with self._rows.change() as work:
            job = Job(job.id, job.kind, job.conversation_id, job.attempts + 1)
            work.put("session_job", [self._row(job)])

    def _row(self, job: Job) -> Row:
        return {
            "job_id": job.id,
            "conversation_id": job.conversation_id,
            "kind": job.kind,
            "made_at": to_micros(self._clock()),
            "attempts": job.attempts,
        }


@dataclass(frozen=True, slots=True)
class DreamCycle:
    """Runs what is queued in one namespace."""

    recall: DeepRecall
    extract: FactExtractor
    dream: Dreamer
    jobs: JobQueue

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
