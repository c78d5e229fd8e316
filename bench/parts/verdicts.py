"""The figures of one question, kinds of questions, and whether a difference is more than chance.

In: rankings and what should be in them; figures of the same questions by several rankings. Out:
shares, kinds, verdicts. Nothing here reads a file or asks the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.parts.plain import words_of

__all__ = ["FIGURES", "KINDS", "Rarity", "Verdict", "figures_of", "judge"]

FIGURES: Final = ("first", "first three", "first ten", "recall@10")
KINDS: Final = ("none", "common", "rare")
"""What question and answer share: no word that tells anything, common words alone, a rare one."""

RARE: Final = 0.01
COMMON: Final = 0.05
"""The largest shares of a set's texts that a rare word and one that tells anything are in."""
FEW: Final = 2
"""A word in so many texts is rare in the smallest set."""

DRAWS: Final = 2000
CERTAINTY: Final = 0.90
SEED: Final = 20_260

Outcome = Literal["not worse", "within chance", "worse"]
KeyT = TypeVar("KeyT", bound=Hashable)


def figures_of(
    ranking: Sequence[AbstractSet[KeyT]], answers: Collection[KeyT]
) -> tuple[float, ...]:
    """The `FIGURES` of one question: a hit stands for all texts that it says were the same."""
    wanted = frozenset(answers)
    if not wanted:
        raise ValueError("a question without answers cannot be measured")
    right = [bool(wanted & place) for place in ranking[:10]]
    reached = wanted.intersection(*[set().union(*ranking[:10])]) if ranking else frozenset()
    return (
        float(any(right[:1])),
        float(any(right[:3])),
        float(any(right)),
        len(reached) / len(wanted),
    )


class Rarity:
    """How rare words are among the texts of a set, and what of them a question shares."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._holding: Counter[str] = Counter()
        self._many = 0
        for text in texts:
            self._holding.update(set(words_of(text)))
            self._many += 1

    def kind(self, question: str, answers: Iterable[str]) -> str:
        """One of `KINDS`, by the rarest word that the question shares with any answer."""
        shared = self.shared(question, answers)
        fewest = min((self._holding[word] for word in shared), default=self._many + 1)
        if fewest <= max(FEW, RARE * self._many):
            return "rare"
        return "common" if fewest <= COMMON * self._many else "none"

    def shared(self, question: str, answers: Iterable[str]) -> frozenset[str]:
        """The words of the question that an answer holds."""
        held = {word for answer in answers for word in words_of(answer)}
        return frozenset(words_of(question)) & held


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the whole reaches beside the better of its parts, as means over the same questions.

    `low` to `high` holds the difference in `CERTAINTY` of the draws of a paired bootstrap.
    """

    whole: float
    part: float
    better: str
    low: float
    high: float
    outcome: Outcome

    @property
    def difference(self) -> float:
        """How far the whole stands above the part."""
        return self.whole - self.part


def judge(whole: Sequence[float], parts: Mapping[str, Sequence[float]]) -> Verdict:
    """Compare the whole's values, one a question, with those of the part of the best mean.

    "worse" is a lower mean of which the bootstrap is sure, "within chance" one of which it is not.
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 13.3: percentiles.
    """
    means = {name: float(np.mean(values)) for name, values in parts.items()}
    better = max(means, key=lambda name: means[name])
    differences = np.asarray(whole, np.float64) - np.asarray(parts[better], np.float64)
    low, high = _interval(differences)
    mean = float(differences.mean())
    outcome: Outcome = "not worse"
    if mean < -1e-9:
        outcome = "worse" if high < -1e-9 else "within chance"
    return Verdict(float(np.mean(whole)), means[better], better, low, high, outcome)


def _interval(differences: NDArray[np.float64]) -> tuple[float, float]:
    many = len(differences)
    drawn = np.random.default_rng(SEED).integers(0, many, (DRAWS, many))
    means = differences[drawn].mean(axis=1)
    edge = 100.0 * (1.0 - CERTAINTY) / 2.0
    low, high = np.percentile(means, (edge, 100.0 - edge))
    return float(low), float(high)
