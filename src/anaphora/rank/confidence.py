"""How sure one may be that a hit leads to the evidence: a calibrated probability, not a score.

For the hits of one question, best first: the probability that the evidence is in a hit or near it.

How it is calibrated: logistic regression with a small ridge on a few features of the first ten
hits, fitted on chats 1 to 5 of REALTALK and of BEAM-100K (the questions that a shortcut may take);
a hit is right when a turn of the labelled evidence is at most `REACH` turns away. Memories have no
neighbours: there every turn was kept as a memory of its own, with its speaker's name, and a hit is
right when it is labelled evidence itself. Chats 6 to 10 had no part in either fit:
`make fit ONLY=confidence` fits both anew, bench/results/deep_shortcut.md reports them. Lines of a
chat are poor memories, so memories come out unsure unless one stands far out: that errs to the side
of asking a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from anaphora.rank.odds import probability_of
from anaphora.values.fitted import fitted

REACH: Final = 5
"""Turns on either side of a hit that count as its neighbourhood."""

COMPARED: Final = 20
"""Turns of one question that a hit is weighed against: those further down say nothing of it."""

TENTH: Final = 9
"""The place that a hit's lead is measured against: far enough down to be chance."""

MOST_NEAR: Final = 4.0


MOST_ADDED: Final = 12

Weights = tuple[float, ...]

# The constant, then one weight a feature, as bench/deep_shortcut.py fits them.
_NUMBERS: Final = fitted("confidence")

TURN_WEIGHTS: Final[Weights] = _NUMBERS["TURN_WEIGHTS"]
MEMORY_WEIGHTS: Final[Weights] = _NUMBERS["MEMORY_WEIGHTS"]


@dataclass(frozen=True, slots=True)
class TurnMatch:
    """A turn that was hit: its score, where it stands, and of how many turns."""

    score: float
    conversation: str
    index: int
    turns: int


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A memory that was hit: its similarity, how many words it adds to those of the question (stop
    words left out), and whether it asks something itself."""

    similarity: float
    added: int
    asks: bool = False


def turn_features(hits: Sequence[TurnMatch], rest: float | None = None) -> list[tuple[float, ...]]:
    """(score, lead, near) of each hit: its score; by how much it leads the tenth hit (if there
    are fewer, `rest`, or the last of them); how many more of the others, at most 4, are in its
    neighbourhood than would be by chance: in a short conversation everything is near everything."""
    tenth = _find_tenth([hit.score for hit in hits], rest)
    features: list[tuple[float, ...]] = []
    for index, hit in enumerate(hits):
        neighbours = [
            match
            for position, match in enumerate(hits[:COMPARED])
            if position != index and match.conversation == hit.conversation
        ]
        near_count = sum(abs(match.index - hit.index) <= REACH for match in neighbours)
        chance = len(neighbours) * min(1.0, 2 * REACH / max(1, hit.turns))
        lead = max(0.0, hit.score - tenth)
        features.append((hit.score, lead, min(max(0.0, near_count - chance), MOST_NEAR)))
    return features


def memory_features(
    hits: Sequence[MemoryMatch], rest: float | None = None
) -> list[tuple[float, ...]]:
    """(similarity, lead, alone, added, asks) of each hit: `lead` over the tenth, `alone` over the
    best of the others, `added` words as a share of 12."""
    values = sorted((hit.similarity for hit in hits), reverse=True)
    tenth = _find_tenth(values, rest)
    features: list[tuple[float, ...]] = []
    for hit in hits:
        # The first hit is compared with the second, all others with the first.
        best_other = values[1] if hit.similarity == values[0] and len(values) > 1 else values[0]
        if len(values) == 1:
            best_other = tenth
        features.append(
            (
                hit.similarity,
                max(0.0, hit.similarity - tenth),
                max(0.0, hit.similarity - best_other),
                min(hit.added, MOST_ADDED) / MOST_ADDED,
                float(hit.asks),
            )
        )
    return features


def turn_confidence(
    hits: Sequence[TurnMatch], weights: Weights = TURN_WEIGHTS, *, rest: float | None = None
) -> tuple[float, ...]:
    """For each turn the probability, 0 to 1, that its neighbourhood holds the evidence.

    `hits` are the best of one question, in descending order of score, 20 of them or more where
    there are so many: with fewer, leads and neighbours are missed, and the probability comes out
    lower. What the first 20 come to does not depend on those that follow. Where there are fewer
    than ten, `rest` is the score of all that was not found; None errs low: it is the last hit's.
    """
    return tuple(_logistic(weights, features) for features in turn_features(hits, rest))


def memory_confidence(
    hits: Sequence[MemoryMatch], weights: Weights = MEMORY_WEIGHTS, *, rest: float | None = None
) -> tuple[float, ...]:
    """For each memory the probability, 0 to 1, that it is the evidence. `hits` are the best ten.

    `rest` as in `turn_confidence`.
    """
    return tuple(_logistic(weights, features) for features in memory_features(hits, rest))


def _find_tenth(scores: Sequence[float], rest: float | None) -> float:
    """What stands for chance: the tenth score; of fewer `rest`, or the last; of one, nothing."""
    if len(scores) > TENTH:
        return scores[TENTH]
    if rest is None:
        return scores[-1] if len(scores) > 1 else 0.0
    return rest


def _logistic(weights: Weights, values: tuple[float, ...]) -> float:
    return probability_of(weights[0] + sum(w * x for w, x in zip(weights[1:], values, strict=True)))
