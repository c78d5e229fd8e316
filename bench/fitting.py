"""Logistic regression, for the weights that are fitted and written down: no package is needed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Of Newton's method; it is done after some ten.
_STEPS = 25


def fit_logistic(
    features: ArrayLike, labels: ArrayLike, counts: ArrayLike, ridge: float
) -> tuple[list[float], float]:
    """A weight for each of F features, and the constant, for features as they are.

    `features` (N, F), `labels` (N,) 0 or 1, `counts` (N,) what each counts; `ridge` is the strength
    of the penalty on the weights of the standardised features.
    """
    given, wanted, of_each = (np.asarray(one, np.float64) for one in (features, labels, counts))
    mean, spread = given.mean(0), given.std(0)
    spread[spread == 0] = 1.0
    scaled = np.column_stack(((given - mean) / spread, np.ones(len(given))))
    weights = _newton(scaled, wanted, of_each, [ridge] * given.shape[1] + [0.0], 0.0)
    found = weights[:-1] / spread
    return found.tolist(), float(weights[-1] - found @ mean)


def fit_added(
    features: ArrayLike, labels: ArrayLike, counts: ArrayLike, odds: ArrayLike, ridge: float
) -> list[float]:
    """A weight for each of F features whose sum is added to the log-odds (N,) that are known.

    The rest is as in `fit_logistic`, the features as they are, without a constant.
    """
    values, wanted, of_each, base = (
        np.asarray(one, np.float64) for one in (features, labels, counts, odds)
    )
    weights: list[float] = _newton(
        values, wanted, of_each, [ridge] * values.shape[1], base
    ).tolist()
    return weights


def _newton(
    values: Floats, wanted: Floats, of_each: Floats, ridges: list[float], base: Floats | float
) -> Floats:
    """The weights (F,) by Newton's method, with a penalty for each, beside known log-odds."""
    penalty, weights = np.diag(ridges), np.zeros(values.shape[1])
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-base - values @ weights))
        slope = values.T @ (of_each * (chance - wanted)) + penalty @ weights
        curve = (values.T * (of_each * chance * (1.0 - chance))) @ values + penalty
        weights -= np.linalg.solve(curve, slope)
    return weights


def unless_better(worth: Mapping[float, float], in_use: float, chance: float) -> float:
    """The best value; the one in use where none is better by more than chance."""
    best = max(worth, key=lambda value: worth[value])
    return best if worth[best] > worth.get(in_use, 0.0) + chance else in_use
