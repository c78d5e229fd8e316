"""Turns and memories on one scale: the chance that what was asked for stands there.

In: the hits of both lanes, whose own scores are not of one scale. Out: sources whose `score` is a
probability: that of `rank.confidence`, which says how it is calibrated. As a list to choose from it
never contradicts the order in which a lane has ranked its hits. Pure: no clock, disk or model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from anaphora.core.analyser import STOP_WORDS, analyse, query_terms
from anaphora.deep.evidence.rows import memory_id, of_hit
from anaphora.rank.confidence import (
    COMPARED,
    Placed,
    Told,
    memory_confidence,
    turn_confidence,
)
from anaphora.values.deep import DeepSource

if TYPE_CHECKING:
    from anaphora.values.conversations import TurnHit
    from anaphora.values.memories import MemoryHit

TURNS: Final = COMPARED
"""So many turns are looked at, however few are wanted: each is weighed against the others."""
REST: Final = 0.0
"""What a search has not found matches nothing. To choose from a list that is what its hits stand
out from; an answer without a model (None) must rather be too rare where there is little to compare
with."""
MEMORIES: Final = COMPARED // 2


def weighed_turns(
    hits: Iterable[TurnHit], lengths: Mapping[str, int], rest: float | None = REST
) -> list[DeepSource]:
    """Turns as their lane ranks them, with the chance that the evidence is there or close by.

    Close by are 5 turns. `lengths` says how many turns each conversation has.
    """
    ordered = sorted(hits, key=lambda hit: -hit.score)
    placed = [
        Placed(hit.score, hit.conversation_id, hit.index, lengths.get(hit.conversation_id, 0))
        for hit in ordered
    ]
    return [
        replace(of_hit(hit), score=chance)
        for hit, chance in zip(ordered, turn_confidence(placed, rest=rest), strict=True)
    ]


def weighed_memories(
    hits: Sequence[MemoryHit], query: str, rest: float | None = REST
) -> list[DeepSource]:
    """Memories as their lane ranks them, with the chance that each is the evidence.

    They have no neighbours.
    """
    ordered = sorted(hits, key=lambda hit: -hit.similarity)
    terms = {*query_terms(query), *STOP_WORDS}
    told = [
        Told(hit.similarity, len(set(analyse(hit.text)) - terms), "?" in hit.text)
        for hit in ordered
    ]
    names = [hit.id for hit in ordered]
    chances = dict(zip(names, memory_confidence(told, rest=rest), strict=True))
    return [
        DeepSource("memory", memory_id(hit.id), hit.text, ts=hit.created_at, score=chances[hit.id])
        for hit in hits
    ]


def one_list(
    turns: Sequence[DeepSource], memories: Sequence[DeepSource], limit: int
) -> tuple[DeepSource, ...]:
    """The `limit` best of both by their chances.

    Each kind keeps the order of its lane, which is better at telling its hits apart: where a later
    one has the higher chance, since more hits stand around it, both get the mean of theirs.
    """
    mixed = [*_evened(turns), *_evened(memories)]
    return tuple(sorted(mixed, key=lambda one: -(one.score or 0.0))[:limit])


def _evened(hits: Sequence[DeepSource]) -> list[DeepSource]:
    chances = _falling([one.score or 0.0 for one in hits])
    return [replace(one, score=chance) for one, chance in zip(hits, chances, strict=True)]


def _falling(chances: Sequence[float]) -> list[float]:
    """The nearest values that never rise: pool adjacent violators (isotonic regression)."""
    pools: list[tuple[float, int]] = []
    for chance in chances:
        total, many = chance, 1
        while pools and pools[-1][0] / pools[-1][1] < total / many:
            before, size = pools.pop()
            total, many = total + before, many + size
        pools.append((total, many))
    return [total / many for total, many in pools for _ in range(many)]
