"""The jobs between sessions: the queue that the end of a session fills, and the cycle over it.

Jobs are in the database and survive a restart; the next idle process runs them: the extractions,
then a dream. A job whose model fails stays for the next time, three times in all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from anaphora.deep.dreaming.dream import Dreamer
from anaphora.deep.dreaming.extract import FactExtractor
from anaphora.deep.recall import DeepRecall
from anaphora.deep.tools import Models
from anaphora.errors import ModelError, NotFound
from anaphora.store.codecs import to_micros
from anaphora.values.conversations import Degraded
from anaphora.values.deep import Budget, DreamReport, Extracted

if TYPE_CHECKING:
    from anaphora.store.namespace import Row
    from anaphora.store.table_rows import TableRows, TableTransaction

TRIES: Final = 3

GRACE: Final = timedelta(days=1)
"""How long a soft-forgotten memory can be restored."""

JobKind = Literal["extract", "dream", "erase"]


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The queue of one namespace. `clock` gives aware times, `ids` new ids.

    A job is a row of `session_job`; in its column for the conversation, a dream has nothing and an
    erasure has the id of the record.
    """

    rows: TableRows
    clock: Callable[[], datetime]
    ids: Callable[[], str]

    def queue_session_jobs(self, conversation_id: str, *, extract: bool) -> None:
        """Queue the jobs for the end of a session; none of them is queued twice."""
        jobs: list[tuple[JobKind, str | None]] = [("dream", None)]
        if extract:
            jobs.insert(0, ("extract", conversation_id))
        with self.rows.change() as work:
            queued_keys = {
                (row["kind"], row["conversation_id"]) for row in work.find("session_job")
            }
            for kind, subject_id in jobs:
                if (kind, subject_id) not in queued_keys:
                    self._put(work, self.ids(), kind, subject_id, 0)

    def list_pending(self, kind: JobKind | None = None) -> list[Row]:
        """The waiting jobs, the oldest first; erasures only if `kind` is "erase"."""
        return [
            row
            for row in self.rows.find("session_job")
            if kind == row["kind"] or (kind is None and row["kind"] != "erase")
        ]

    def erase_later(self, record_ids: Iterable[str]) -> None:
        """Queue the erasure of hidden records, for the end of their grace period."""
        with self.rows.change() as work:
            for record_id in record_ids:
                self._put(work, self.ids(), "erase", record_id, 0)

    def list_due_erasures(self, *, all_of_them: bool = False) -> list[Row]:
        """The erasures after their grace period."""
        oldest = to_micros(self.clock() - GRACE)
        return [
            row for row in self.list_pending("erase") if all_of_them or row["made_at"] <= oldest
        ]

    def cancel_erasures(self, record_ids: Collection[str]) -> None:
        """Take the erasures of these records off the queue."""
        for row in self.list_pending("erase"):
            if row["conversation_id"] in record_ids:
                self.remove(row)

    def remove(self, job: Row) -> None:
        """Take a job off the queue."""
        with self.rows.change() as work:
            work.drop("session_job", {"job_id": job["job_id"]})

    def retry_later(self, job: Row) -> None:
        """Leave a job for the next time, three times in all."""
        attempts = job["attempts"] + 1
        if attempts >= TRIES:
            self.remove(job)
            return
        with self.rows.change() as work:
            self._put(work, job["job_id"], job["kind"], job["conversation_id"], attempts)

    def _put(
        self, work: TableTransaction, job_id: str, kind: str, subject_id: str | None, attempts: int
    ) -> None:
        row: Row = {
            "job_id": job_id,
            "conversation_id": subject_id,
            "kind": kind,
            "made_at": to_micros(self.clock()),
            "attempts": attempts,
        }
        work.put("session_job", [row])


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
