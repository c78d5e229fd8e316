"""Recalls what agents did with their tools, by words alone: a line says what it is about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from anaphora.index.memories.state import MemoryQuery
from anaphora.language.analyser import QueryWord
from anaphora.recall.lanes import Lane, LaneAnswer, LaneHit, SearchRequest
from anaphora.recall.record_reads import record_cache
from anaphora.recall.view_cache import ViewCache
from anaphora.store.records.rows import session_key
from anaphora.values.conversations import TurnChoice
from anaphora.values.fitted import fitted
from anaphora.values.memories import MemoryRecord
from anaphora.values.search import SearchHit
from anaphora.values.search_kinds import TOOL_CALL
from anaphora.values.sessions import ToolCallHit

if TYPE_CHECKING:
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.store.records.store import Records

_NUMBERS: Final = fitted("search")

LEAST: Final[float] = _NUMBERS["LEAST"]
"""The share of a question's words, by rarity, that a line must hold."""

CALLS: Final[float] = _NUMBERS["CALLS"]
"""How likely a tool call is to answer whose line holds all words of a question."""

_OVERFETCH: Final = 8


@dataclass(frozen=True, slots=True)
class ToolCallRecall:
    """Answers from the tool calls of one namespace."""

    records: Records
    index: MemoryIndex
    clock: Callable[[], datetime]
    reads: ViewCache[MemoryRecord] = field(default_factory=record_cache)

    def recall(
        self,
        words: Sequence[QueryWord],
        *,
        top_k: int,
        choice: TurnChoice,
        conversations: Collection[str] | None = None,
        least: float = LEAST,
    ) -> tuple[ToolCallHit, ...]:
        """The lines that hold most of a question's words, of equals the newest first.

        Only those of `conversations`, unless None, and of the times of `choice`.
        """
        if not words:
            return ()
        lookup = MemoryQuery(self.clock(), _OVERFETCH * top_k, terms=words, all_words=True)
        candidates = self.index.candidates(lookup)
        columns = candidates.columns
        shares = {
            record_id: share
            for record_id, share in zip(columns.ids, columns.words.tolist(), strict=True)
            if share >= least
        }
        hits = []
        self.records.sealer.check()
        for record in self.reads.many(candidates.version, shares, self.records.many).values():
            session = record.conversation_id or ""
            if conversations is not None and session not in conversations:
                continue
            when = record.created_at
            is_too_early = choice.since is not None and when < choice.since
            if is_too_early or (choice.until is not None and when >= choice.until):
                continue
            hits.append(_make_hit(record, shares[record.id]))
        hits.sort(key=lambda hit: (-hit.score, -hit.ts.timestamp(), hit.id))
        return tuple(hits[:top_k])

    def of(self, conversation_id: str) -> tuple[ToolCallHit, ...]:
        """All calls of a session, in the order in which they were made."""
        calls = [
            _make_hit(record, 1.0)
            for record in self.records.with_same_key(session_key(conversation_id))
        ]
        return tuple(sorted(calls, key=lambda hit: (hit.index, hit.ts, hit.id)))


def _make_hit(record: MemoryRecord, score: float) -> ToolCallHit:
    session, index = record.conversation_id or "", record.turn_index or 0
    return ToolCallHit(record.id, record.text, record.created_at, score, session, index)


def call_lane(calls: ToolCallRecall) -> Lane:
    """The lane over tool calls."""
    return Lane(
        "tool calls",
        (TOOL_CALL,),
        frozenset(("times", "project")),
        partial(_search_calls, calls),
    )


def _search_calls(calls: ToolCallRecall, request: SearchRequest) -> LaneAnswer:
    hits = []
    for hit in calls.recall(
        request.question.words,
        top_k=request.top_k,
        choice=TurnChoice(request.choice.since, request.choice.until),
        conversations=request.sessions,
    ):
        excerpt, matches = request.show(hit.text)
        score = CALLS * hit.score
        search_hit = SearchHit(
            TOOL_CALL.name,
            hit.id,
            hit.text,
            excerpt,
            score,
            matches,
            hit.ts,
            conversation_id=hit.conversation_id,
            index=hit.index,
        )
        hits.append(LaneHit(search_hit, score))
    return LaneAnswer(tuple(hits))
