"""Shares of what a reader judged: order, silence, classes and calibration. Pure, on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
LOST: Final = 0.03
"""Of the questions with an answer, the share that may be lost to silence."""


@dataclass(frozen=True, slots=True)
class Order:
    """How many questions have an answer first, among three, among ten; the mean of 1 / place."""

    first: float
    three: float
    ten: float
    mrr: float


def order_of(places: Sequence[int]) -> Order:
    """Of the place of each question's best answer, from 1."""
    best = np.array(places)
    first, three, ten = (float((best <= upto).mean()) for upto in (1, 3, 10))
    return Order(first, three, ten, float((1 / best).mean()))


def told_apart(answered: Floats, silent: Floats) -> float:
    """How often a score of the first is above one of the second (AUC); ties count half."""
    if not len(answered) or not len(silent):
        return float("nan")
    above = (answered[:, None] > silent[None]).mean()
    return float(above + (answered[:, None] == silent[None]).mean() / 2)


def silent_share(answered: Floats, silent: Floats, lost: float = LOST) -> float:
    """What was never said and stays below the score that so many answered ones stay below."""
    if not len(answered) or not len(silent):
        return float("nan")
    allowed = int(lost * len(answered))
    return float((silent < np.sort(answered)[allowed]).mean())


def average_precision(scores: Floats, right: Flags) -> float:
    """The mean, over the right ones, of the precision down to each, the highest scores first."""
    ranked = right[np.argsort(-scores, kind="stable")]
    if not ranked.any():
        return float("nan")
    precision = np.cumsum(ranked) / np.arange(1, len(ranked) + 1)
    return float(precision[ranked].mean())


def recall_at(scores: Floats, right: Flags, precision: float) -> tuple[float, float]:
    """The largest share of the right ones that a threshold finds so precisely, and the threshold.

    (0, infinity) where none does.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = right[order]
    found = np.cumsum(ranked)
    precise = np.flatnonzero(found / np.arange(1, len(ranked) + 1) >= precision)
    if not ranked.any() or not len(precise):
        return 0.0, float("inf")
    last = int(precise[-1])
    return float(found[last] / ranked.sum()), float(scores[order[last]])


@dataclass(frozen=True, slots=True)
class Decile:
    """The judged whose probability is in one tenth: how many, its mean, the share that is right."""

    upto: float
    count: int
    said: float
    right: float


def reliability(probabilities: Floats, right: Flags) -> tuple[list[Decile], float]:
    """By tenths of the probability, and the expected calibration error over them."""
    tenth = np.minimum((probabilities * 10).astype(int), 9)
    rows, error = [], 0.0
    for at in range(10):
        own = tenth == at
        if not own.any():
            continue
        said, share = float(probabilities[own].mean()), float(right[own].mean())
        rows.append(Decile((at + 1) / 10, int(own.sum()), said, share))
        error += abs(said - share) * own.mean()
    return rows, float(error)
