"""What stands before the answers that a part finds and the whole does not.

In: a deep ranking of the engine with the factors of each hit. Out: the factors of which one alone,
taken away, brings an answer back to where the part has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.parts.sets import Hit, Key, Lane

__all__ = ["DEPTHS", "Lost", "causes"]

DEPTHS: Final = (1, 3, 10)
"""Places within which an answer is looked for."""
MEANING: Final = "meaning"
# A fact's score is a product of these and of its similarity.
_FACTORS: Final = ("decay", "reinforcement", "unanswered")


@dataclass(frozen=True, slots=True)
class Lost:
    """A part has an answer within `depth`, the whole has none: the factors of which each alone
    keeps it out."""

    depth: int
    causes: tuple[str, ...]


def causes(lane: Lane, hits: Sequence[Hit], answers: frozenset[Key], depth: int) -> tuple[str, ...]:
    """The factors, but for meaning, without which an answer would be among the first `depth`."""
    names = _named(hits) if lane == "turns" else ("words", *_FACTORS)
    without = _without_term if lane == "turns" else _without_factor
    brought_back = []
    for name in names:
        scores = [without(hit, name) for hit in hits]
        order = sorted(range(len(hits)), key=lambda at: -scores[at])
        if any(hits[at].keys & answers for at in order[:depth]):
            brought_back.append(name)
    return tuple(brought_back)


def _named(hits: Sequence[Hit]) -> tuple[str, ...]:
    names = dict.fromkeys(name for hit in hits for name in hit.factors)
    return tuple(name for name in names if name != MEANING)


def _without_term(hit: Hit, name: str) -> float:
    return hit.score - hit.factors.get(name, 0.0)


def _without_factor(hit: Hit, name: str) -> float:
    factors: Mapping[str, float] = hit.factors
    if name == "words":
        similar = factors["similarity"]
        return hit.score * factors.get(MEANING, 0.0) / similar if similar else 0.0
    return hit.score / (factors.get(name, 1.0) or 1.0)
