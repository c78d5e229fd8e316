"""The shortcut: where the best hits are sure to lead to the evidence, no model is asked.

In: a question and the evidence of its scope. Out: hits with the probability that their
neighbourhood holds the evidence, and the evidence itself as text. The probability is that of
`rank.confidence`, which says how it is calibrated. Questions of counting, order, time and
completeness never take it, however sure the hits are. It calls no model and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from anaphora.deep.evidence.scoped import MEMORY, NamespaceEvidence, ScopedEvidence
from anaphora.deep.reading import asks_about_the_whole
from anaphora.deep_values import DeepSource
from anaphora.errors import NotFound
from anaphora.rank.confidence import (
    REACH,
    Placed,
    Told,
    memory_confidence,
    turn_confidence,
)
from anaphora.rank.select import token_cost
from anaphora.text import STOP_WORDS, analyse, query_terms

__all__ = ["BUDGET", "LOOKED_AT", "NEEDED", "SURE", "Weighed", "best_evidence", "shortcut", "shown"]

SURE: Final = 0.8
NEEDED: Final = 3
LOOKED_AT: Final = 20
BUDGET: Final = 2_500
"""Tokens of the evidence that is given back: hits first, then their neighbours, nearest first."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A hit and the probability that what the question asks for stands in it or beside it."""

    source: DeepSource
    confidence: float


def weigh(
    lane: NamespaceEvidence, scoped: ScopedEvidence, question: str, *, include_memory: bool = True
) -> tuple[Weighed, ...]:
    """The hits for `question`, the surest first."""
    # Memories stand among the turns: with more asked for, there are turns enough all the same.
    found = scoped.search(question, LOOKED_AT + LOOKED_AT // 2)
    turns = sorted((one for one in found if one.kind == "turn"), key=lambda one: -(one.score or 0))
    turns = turns[:LOOKED_AT]
    long = _lengths(lane)
    placed = [
        Placed(
            one.score or 0.0,
            one.conversation_id or "",
            one.index or 0,
            long.get(one.conversation_id or "", 0),
        )
        for one in turns
    ]
    weighed = [Weighed(*pair) for pair in zip(turns, turn_confidence(placed), strict=True)]
    if include_memory:
        weighed += _memories(lane, question, {one.id for one in found})
    return tuple(sorted(weighed, key=lambda one: (-one.confidence, one.source.id)))


def shortcut(
    lane: NamespaceEvidence, scoped: ScopedEvidence, question: str, *, include_memory: bool = True
) -> tuple[Weighed, ...]:
    """The hits of which at least three are sure; empty where a model must look."""
    if asks_about_the_whole(question) is not None:
        return ()
    weighed = weigh(lane, scoped, question, include_memory=include_memory)
    sure = tuple(one for one in weighed if one.confidence >= SURE)
    return sure if len(sure) >= NEEDED else ()


def best_evidence(
    scoped: ScopedEvidence, hits: Iterable[DeepSource], budget: int = BUDGET
) -> tuple[DeepSource, ...]:
    """The hits and their neighbourhoods within a budget of tokens, each conversation in its order.

    Hits come before neighbours, near neighbours before far ones; one hit at least.
    """
    wanted = list(dict.fromkeys(hits))
    taken: dict[str, DeepSource] = {}
    left = budget
    for one in (*wanted, *_neighbours(scoped, wanted)):
        cost = token_cost(one.text)
        if one.id not in taken and (cost <= left or not taken):
            taken[one.id] = one
            left -= cost
    order = {name: at for at, name in enumerate(dict.fromkeys(_place(one) for one in wanted))}
    return tuple(sorted(taken.values(), key=lambda one: (order[_place(one)], one.index or 0)))


def shown(sources: Sequence[DeepSource]) -> str:
    """Evidence as text for an agent: one line a turn, with who said it, when, and its id."""
    lines = []
    for one in sources:
        when = f" {one.ts:%Y-%m-%d %H:%M}" if one.ts is not None and one.ts.year > 1 else ""
        who = one.role or "memory"
        lines.append(f"[{one.id}{when}] {who}: {' '.join(one.text.split())}")
    return "\n".join(lines)


def _place(one: DeepSource) -> str:
    return one.conversation_id or MEMORY


def _neighbours(scoped: ScopedEvidence, hits: Sequence[DeepSource]) -> list[DeepSource]:
    around: list[tuple[int, int, DeepSource]] = []
    for rank, hit in enumerate(hits):
        if hit.conversation_id is None or hit.index is None:
            continue
        first = max(0, hit.index - REACH)
        try:
            near = scoped.transcript(hit.conversation_id, first, hit.index + REACH + 1)
        except NotFound:
            continue  # It went while the question was under way.
        around += [
            (abs((one.index or 0) - hit.index), rank, one) for one in near if one.id != hit.id
        ]
    return [one for _, _, one in sorted(around, key=lambda item: item[:2])]


def _lengths(lane: NamespaceEvidence) -> dict[str, int]:
    """How many turns each conversation has."""
    table = lane.turns.view().table
    counts = np.bincount(table.conversation, minlength=len(table.conversations)).tolist()
    return dict(zip(table.conversations, counts, strict=True))


def _memories(lane: NamespaceEvidence, question: str, known: set[str]) -> list[Weighed]:
    """Memories are weighed by themselves: they have no neighbours."""
    hits = lane.recall_memories.recall(question, top_k=LOOKED_AT // 2)
    ordered = sorted(hits, key=lambda hit: -hit.similarity)
    terms = {*query_terms(question), *STOP_WORDS}
    told = [
        Told(hit.similarity, len(set(analyse(hit.text)) - terms), "?" in hit.text)
        for hit in ordered
    ]
    return [
        Weighed(
            DeepSource("memory", MEMORY + hit.id, hit.text, ts=hit.created_at, score=hit.score),
            sure,
        )
        for hit, sure in zip(ordered, memory_confidence(told), strict=True)
        if MEMORY + hit.id in known or sure >= SURE
    ]
