"""Boosted oblivious trees for several classes: a tree asks the same thing at each of its depths.

In: features, classes and what each row counts. Out: `Trees`, which `anaphora.rank.pairs`
evaluates in one pass. The last class has log-odds 0; each leaf has a step of Newton's for the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

BINS: Final = 32


@dataclass(frozen=True, slots=True)
class Growth:
    """How trees are grown: `share` of the rows and of the features are looked at in each."""

    trees: int = 300
    depth: int = 6
    rate: float = 0.08
    ridge: float = 20.0
    share: float = 0.6
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Trees:
    """`features` and `limits` (trees, depth), `leaves` (trees, 2 ** depth, classes − 1)."""

    features: Any
    limits: Any
    leaves: Any


def class_chances(odds: Any) -> Any:
    """The probability of every class, (n, classes), of log-odds against the last one."""
    logits = np.column_stack((odds, np.zeros(len(odds))))
    shares = np.exp(logits - logits.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True)


def fit_trees(
    rows: Any,
    classes: Any,
    counts: Any,
    growth: Growth,
    watch: Callable[[int, Any], None] | None = None,
) -> Trees:
    """Grow trees on rows (n, features); `watch` is told each number of trees and the new one."""
    chance = np.random.default_rng(growth.seed)
    limits = _bin_limits(rows)
    binned = np.stack(
        [np.searchsorted(edges, rows[:, at], side="left") for at, edges in enumerate(limits)]
    ).astype(np.int16)
    rated = int(classes.max())
    targets = np.eye(rated + 1)[classes][:, :rated]
    odds = np.zeros((len(rows), rated))
    grown: list[tuple[Any, Any, Any]] = []
    for number in range(growth.trees):
        chances = class_chances(odds)[:, :rated]
        slopes, curves = (
            counts[:, None] * (chances - targets),
            counts[:, None] * chances * (1 - chances),
        )
        sample = np.flatnonzero(chance.random(len(rows)) < growth.share)
        drawn = np.flatnonzero(chance.random(len(limits)) < growth.share)
        columns = np.array([feature for feature in drawn.tolist() if len(limits[feature])])
        splits = _grow(binned, slopes, curves, sample, columns, growth)
        leaf = np.zeros(len(rows), np.intp)
        for depth, (feature, limit) in enumerate(splits):
            leaf += (binned[feature] > limit).astype(np.intp) << depth
        size = 1 << growth.depth
        steps = np.zeros((size, rated))
        for class_number in range(rated):
            slope = np.bincount(leaf, slopes[:, class_number], size)
            curve = np.bincount(leaf, curves[:, class_number], size)
            steps[:, class_number] = -growth.rate * slope / (curve + growth.ridge)
        odds += steps[leaf]
        grown.append(
            (
                np.array([feature for feature, _ in splits]),
                np.array([limits[feature][limit] for feature, limit in splits]),
                steps,
            )
        )
        if watch is not None:
            watch(number + 1, grown[-1])
    return Trees(*(np.stack(parts) for parts in zip(*grown, strict=True)))


def _bin_limits(rows: Any) -> list[Any]:
    """For each feature the values that part it, at most `BINS`; a greater value is above."""
    limits = []
    for column in rows.T:
        levels = np.unique(column)
        if len(levels) > BINS:
            levels = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)))
        limits.append(((levels[:-1] + levels[1:]) / 2).astype(np.float32))
    return limits


def _grow(
    binned: Any, slopes: Any, curves: Any, taken: Any, asked: Any, growth: Growth
) -> list[tuple[int, int]]:
    """The (feature, limit) of each depth of a tree, the best one after the other."""
    leaf = np.zeros(len(taken), np.intp)
    slope, curve = slopes[taken], curves[taken]
    bins_of = {feature: binned[feature][taken].astype(np.intp) for feature in asked.tolist()}
    splits: list[tuple[int, int]] = []
    for depth in range(growth.depth):
        best, best_worth = (int(asked[0]), 0), -np.inf
        for feature, bins in bins_of.items():
            cells = leaf * (BINS + 1) + bins
            shape, size = (1 << depth, BINS + 1), (1 << depth) * (BINS + 1)
            worth = np.zeros(BINS + 1)
            for class_number in range(slope.shape[1]):
                below = np.bincount(cells, slope[:, class_number], size).reshape(shape).cumsum(1)
                bent = np.bincount(cells, curve[:, class_number], size).reshape(shape).cumsum(1)
                above, bent_above = below[:, -1:] - below, bent[:, -1:] - bent
                worth += (
                    below**2 / (bent + growth.ridge) + above**2 / (bent_above + growth.ridge)
                ).sum(0)
            limit = int(worth[:-1].argmax())
            last = int(bins.max())
            if worth[limit] > best_worth and limit < max(last, 1):
                best, best_worth = (feature, limit), float(worth[limit])
        splits.append(best)
        leaf += (bins_of[best[0]] > best[1]).astype(np.intp) << depth
    return splits
