"""Blind spots: questions that memory could not answer, kept for the next dream.

One `Gap` for each question however it is spelt, with how often it was asked; closed when its answer
is found, expired after 7 days. Nothing here asks a model or searches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from anaphora.core.json_codec import as_json, from_plain
from anaphora.deep.evidence.questions import question_form
from anaphora.deep.evidence.snapshot import Snapshot
from anaphora.deep.persisted.answers import QuestionContext
from anaphora.errors import Unreadable
from anaphora.store.codecs import DAMAGE, from_micros, moment, readable, to_micros
from anaphora.store.namespace import Row
from anaphora.store.table_rows import TableRows, TableTransaction
from anaphora.values.deep import Gap, GapStatus, Scope

KIND: Final = "knowledge_gap"
PRIORITY: Final = 0.85
LIFE: Final = timedelta(days=7)
MOST: Final = 500
"""Gaps kept in a namespace, closed and expired ones among them: the oldest of those go first."""


def question_key(question: str) -> str:
    """A digest that the same question has whatever its case and white space."""
    return _digest(question_form(question))


@dataclass(frozen=True, slots=True)
class GapRecord:
    """A gap with what a dream needs: where it was asked, what was known, who has tried.

    `then` is what the question found when it was last asked; `tried` are the models that have
    looked for an answer since.
    """

    gap: Gap
    scope: Scope
    conversation_id: str | None
    include_memory: bool
    then: Snapshot | None
    tried: tuple[str, ...] = ()

    def asked(self, models: tuple[str, ...] = ()) -> QuestionContext:
        """Its question, where it was asked, now to these models."""
        where = (self.scope, self.conversation_id, self.include_memory)
        return QuestionContext(self.gap.question, *where, models)


@dataclass(frozen=True, slots=True)
class GapStore:
    """The blind spots of one namespace. `clock` gives aware times, `ids` new ids."""

    rows: TableRows
    clock: Callable[[], datetime]
    ids: Callable[[], str]

    def list(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """The gaps of a status (None: all), the most asked first, then the newest."""
        return tuple(one.gap for one in self.known(status))

    def known(self, status: GapStatus | None = "open") -> tuple[GapRecord, ...]:
        """As `list`, with what a dream needs. One whose time is over counts as expired."""
        found = gaps_in(self.rows, self.clock())
        kept = [one for one in found if status is None or one.gap.status == status]
        return tuple(sorted(kept, key=_order))

    def register(
        self, work: TableTransaction, asked: QuestionContext, then: Snapshot | None
    ) -> Gap:
        """Note that a question has no useful answer; the one gap of it, asked once more."""
        now = self.clock()
        rows = _rows_of(work, asked.stored)
        same = [_due(one, now) for one in readable(rows, _gap_of)]
        gap = next((one.gap for one in same if one.gap.status == "open"), None)
        if gap is None:
            gap = Gap(self.ids(), asked.stored, now, now + LIFE, KIND, PRIORITY)
        else:
            # Whoever still asks still wants to know: its days begin anew.
            gap = replace(gap, asked=gap.asked + 1, expires_at=max(gap.expires_at, now + LIFE))
        where = (asked.scope, asked.conversation_id, asked.include_memory)
        put_gap(work, GapRecord(gap, *where, then, asked.models))
        return gap

    def close_question(
        self, work: TableTransaction, asked: QuestionContext, by: Sequence[str]
    ) -> None:
        """A useful answer came: close the gap of this question, if there is one."""
        # Without its secret a question reads like another one's: its answer answers no other.
        rows = () if asked.secrets else _rows_of(work, asked.question)
        for known in readable((row for row in rows if row["status"] == "open"), _gap_of):
            self.close(work, known, by)

    def close(self, work: TableTransaction, known: GapRecord, by: Iterable[str]) -> Gap:
        """Close a gap: `by` are the sources that answer it."""
        gap = replace(
            known.gap, status="closed", closed_at=self.clock(), closed_by=tuple(dict.fromkeys(by))
        )
        work.put("gap", [_row(replace(known, gap=gap))])
        return gap

    def expire(self, work: TableTransaction) -> tuple[Gap, ...]:
        """Mark the open gaps whose time is over; which they were."""
        now = self.clock()
        over = []
        for known in readable(work.find("gap", {"status": "open"}), _gap_of):
            due = _due(known, now)
            if due is not known:
                work.put("gap", [_row(due)])
                over.append(due.gap)
        return tuple(over)

    def tried(
        self, work: TableTransaction, known: GapRecord, then: Snapshot, by: Iterable[str]
    ) -> None:
        """Note that a dream looked in vain, and at what: it need not look at the same again."""
        if work.find("gap", {"gap_id": known.gap.id, "status": "open"}):
            models = tuple(dict.fromkeys((*known.tried, *by)))
            work.put("gap", [_row(replace(known, then=then, tried=models))])


def gaps_in(rows: TableRows | TableTransaction, now: datetime | None = None) -> Iterator[GapRecord]:
    """Every gap that can be read. With `now`, one whose time is over counts as expired."""
    for known in readable(rows.find("gap"), _gap_of):
        yield known if now is None else _due(known, now)


def put_gap(work: TableTransaction, known: GapRecord) -> None:
    """Write a gap, and keep few of those that are not open."""
    work.put("gap", [_row(known)])
    rows = work.find("gap", newest=True)
    done = [row for row in rows if row["status"] != "open"]
    # Open ones are bounded by their days, closed ones by number.
    for row in done[max(0, MOST - (len(rows) - len(done))) :]:
        work.drop("gap", {"gap_id": row["gap_id"]})


def _rows_of(work: TableTransaction, question: str) -> Sequence[Row]:
    """The rows of this question."""
    return work.find("gap", {"question_key": question_key(question)})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _due(known: GapRecord, now: datetime) -> GapRecord:
    if known.gap.status == "open" and known.gap.expires_at <= now:
        return replace(known, gap=replace(known.gap, status="expired"))
    return known


_PLAIN: Final = ("kind", "status", "priority", "asked", "question")
"""The fields of a gap that lie in their columns as they are."""
_DETAILS: Final = ("scope", "include_memory", "then", "tried")


def _order(known: GapRecord) -> tuple[float, int, float]:
    return -known.gap.priority, -known.gap.asked, -known.gap.created_at.timestamp()


def _gap_of(row: Row) -> GapRecord:
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
            then=from_plain(Snapshot | None, details.get("then")),
            tried=tuple(details.get("tried", ())),
        )
    except DAMAGE as error:
        reason = f"it is invalid ({error})"
        raise Unreadable("gap", str(row["gap_id"]), reason) from error


def _row(known: GapRecord) -> Row:
    gap = known.gap
    return {
        "gap_id": gap.id,
        "question_key": question_key(gap.question),
        "conversation_id": known.conversation_id,
        "created_at": to_micros(gap.created_at),
        "expires_at": to_micros(gap.expires_at),
        "closed_at": to_micros(gap.closed_at),
        "details": as_json({name: getattr(known, name) for name in _DETAILS}),
        "closed_by": as_json(gap.closed_by),
        **{name: getattr(gap, name) for name in _PLAIN},
    }
