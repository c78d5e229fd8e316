"""Work that waits in the database: jobs of ended sessions, and erasures after a grace period.

Jobs survive a restart; the next process that has time runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from anaphora.store.codecs import to_micros

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
