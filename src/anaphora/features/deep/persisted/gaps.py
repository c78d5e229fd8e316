"""Blind spots: questions that memory could not answer, stored for the next dream.

One `Gap` for each question in any spelling, with how often it was asked; closed when its answer is
found, expired after 7 days. Nothing here asks a model or searches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from anaphora.errors import Unreadable
from anaphora.features.deep.evidence.questions import question_form
from anaphora.features.deep.evidence.snapshot import EvidenceSnapshot
from anaphora.features.deep.persisted.answers import QuestionScope
from anaphora.features.deep.values import Gap, GapStatus, Scope
from anaphora.store.codecs import DAMAGE, from_micros, moment, readable, to_micros
from anaphora.store.namespace import Row
from anaphora.store.table_rows import TableRows, TableTransaction
from anaphora.values.json_codec import as_json, from_plain

KIND: Final = "knowledge_gap"
PRIORITY: Final = 0.85
LIFE: Final = timedelta(days=7)
MOST: Final = 500
"""Gaps kept in a namespace; the oldest closed and expired ones are deleted first."""


def question_key(question: str) -> str:
    """A digest that is independent of case and white space."""
    return hashlib.sha256(question_form(question).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class GapRecord:
    """A gap with the data for a dream: its context, the rows found then, the models that tried.

    `then` is the snapshot from when the question was last asked; `tried` are the models that have
    searched for an answer since.
    """

    gap: Gap
    scope: Scope
    conversation_id: str | None
    include_memory: bool
    then: EvidenceSnapshot | None
    tried: tuple[str, ...] = ()

    def to_context(self, models: tuple[str, ...] = ()) -> QuestionScope:
        """Its question and context, for these models."""
        context = (self.scope, self.conversation_id, self.include_memory)
        return QuestionScope(self.gap.question, *context, models)


@dataclass(frozen=True, slots=True)
class GapStore:
    """The blind spots of one namespace. `clock` gives aware times, `ids` new ids."""

    rows: TableRows
    clock: Callable[[], datetime]
    ids: Callable[[], str]

    def list(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """The gaps of a status (None: all), the most asked first, then the newest."""
        return tuple(record.gap for record in self.list_records(status))

    def list_records(self, status: GapStatus | None = "open") -> tuple[GapRecord, ...]:
        """As `list`, with the data for a dream. A gap past its time counts as expired."""
        records = gaps_in(self.rows, self.clock())
        selected_records = [
            record for record in records if status is None or record.gap.status == status
        ]
        return tuple(
            sorted(
                selected_records,
                key=lambda r: (-r.gap.priority, -r.gap.asked, -r.gap.created_at.timestamp()),
            )
        )

    def register(
        self, work: TableTransaction, context: QuestionScope, then: EvidenceSnapshot | None
    ) -> Gap:
        """Record that a question has no useful answer; returns its one gap, asked once more."""
        now = self.clock()
        rows = _rows_of(work, context.stored)
        records = [_expire_if_due(row, now) for row in readable(rows, _read_gap)]
        gap = next((row.gap for row in records if row.gap.status == "open"), None)
        if gap is None:
            gap = Gap(self.ids(), context.stored, now, now + LIFE, KIND, PRIORITY)
        else:
            # A question asked again is still of interest: its 7 days start anew.
            gap = replace(gap, asked=gap.asked + 1, expires_at=max(gap.expires_at, now + LIFE))
        scope_key = (context.scope, context.conversation_id, context.include_memory)
        put_gap(work, GapRecord(gap, *scope_key, then, context.models))
        return gap

    def close_question(
        self, work: TableTransaction, context: QuestionScope, by: Sequence[str]
    ) -> None:
        """The question has a useful answer: close its gap, if there is one."""
        # Without their secrets different questions look the same: the answer closes no gap.
        rows = () if context.secrets else _rows_of(work, context.question)
        for record in readable((row for row in rows if row["status"] == "open"), _read_gap):
            self.close(work, record, by)

    def close(self, work: TableTransaction, record: GapRecord, by: Iterable[str]) -> Gap:
        """Close a gap: `by` are the sources that answer it."""
        gap = replace(
            record.gap, status="closed", closed_at=self.clock(), closed_by=tuple(dict.fromkeys(by))
        )
        work.put("gap", [_to_row(replace(record, gap=gap))])
        return gap

    def expire(self, work: TableTransaction) -> tuple[Gap, ...]:
        """Mark the open gaps past their time as expired; returns those gaps."""
        now = self.clock()
        expired_gaps = []
        for record in readable(work.find("gap", {"status": "open"}), _read_gap):
            checked_record = _expire_if_due(record, now)
            if checked_record is not record:
                work.put("gap", [_to_row(checked_record)])
                expired_gaps.append(checked_record.gap)
        return tuple(expired_gaps)

    def note_tried(
        self, work: TableTransaction, record: GapRecord, then: EvidenceSnapshot, by: Iterable[str]
    ) -> None:
        """Record a fruitless dream and its snapshot, so that it is not repeated on the same."""
        if work.find("gap", {"gap_id": record.gap.id, "status": "open"}):
            models = tuple(dict.fromkeys((*record.tried, *by)))
            work.put("gap", [_to_row(replace(record, then=then, tried=models))])


def gaps_in(rows: TableRows | TableTransaction, now: datetime | None = None) -> Iterator[GapRecord]:
    """Every readable gap. With `now`, a gap past its time counts as expired."""
    for record in readable(rows.find("gap"), _read_gap):
        yield record if now is None else _expire_if_due(record, now)


def put_gap(work: TableTransaction, record: GapRecord) -> None:
    """Write a gap, and bound the number of those that are not open."""
    work.put("gap", [_to_row(record)])
    rows = work.find("gap", newest=True)
    closed_rows = [row for row in rows if row["status"] != "open"]
    # Open gaps are bounded by their lifetime, closed ones by number.
    for row in closed_rows[max(0, MOST - (len(rows) - len(closed_rows))) :]:
        work.drop("gap", {"gap_id": row["gap_id"]})


def _rows_of(work: TableTransaction, question: str) -> Sequence[Row]:
    """The rows of this question."""
    return work.find("gap", {"question_key": question_key(question)})


def _expire_if_due(record: GapRecord, now: datetime) -> GapRecord:
    if record.gap.status == "open" and record.gap.expires_at <= now:
        return replace(record, gap=replace(record.gap, status="expired"))
    return record


_PLAIN: Final = ("kind", "status", "priority", "asked", "question")
"""The fields of a gap that are stored unchanged in columns of the same name."""
_DETAILS: Final = ("scope", "include_memory", "then", "tried")


def _read_gap(row: Row) -> GapRecord:
    try:
        details: dict[str, Any] = json.loads(row["details"])
        gap = Gap(
            id=row["gap_id"],
            created_at=moment(row["created_at"]),
            expires_at=moment(row["expires_at"]),
            closed_at=from_micros(row["closed_at"]),
            closed_by=tuple(json.loads(row["closed_by"])),
            **{name: row[name] for name in _PLAIN},
        )
        return GapRecord(
            gap,
            scope=details["scope"],
            conversation_id=row["conversation_id"],
            include_memory=details["include_memory"],
            then=from_plain(EvidenceSnapshot | None, details.get("then")),
            tried=tuple(details.get("tried", ())),
        )
    except DAMAGE as error:
        reason = f"it is invalid ({error})"
        raise Unreadable("gap", str(row["gap_id"]), reason) from error


def _to_row(record: GapRecord) -> Row:
    gap = record.gap
    return {
        "gap_id": gap.id,
        "question_key": question_key(gap.question),
        "conversation_id": record.conversation_id,
        "created_at": to_micros(gap.created_at),
        "expires_at": to_micros(gap.expires_at),
        "closed_at": to_micros(gap.closed_at),
        "details": as_json({name: getattr(record, name) for name in _DETAILS}),
        "closed_by": as_json(gap.closed_by),
        **{name: getattr(gap, name) for name in _PLAIN},
    }
