"""The best of what was found: rows of memories with their cosines.

In: rows and cosines. Out: the best of them, in order. It does not know where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest rows with their cosines, best first; `exact` is False for an approximation."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]
    exact: bool = True


def best_of(rows: NDArray[np.int64], cosines: NDArray[np.float64], limit: int) -> Nearest:
    """The best `limit`, and what ties with the last of them: a cut must not decide a tie."""
    if 0 < limit < len(rows):
        cut = len(rows) - limit
        keep = cosines >= np.partition(cosines, cut)[cut]
        rows, cosines = rows[keep], cosines[keep]
    order = np.argsort(-cosines, kind="stable")
    return Nearest(rows[order], cosines[order])


def best_part(
    rows: NDArray[np.int64], cosines: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each row once, with the best of its parts' cosines."""
    own, where = np.unique(rows, return_inverse=True)
    best = np.full(len(own), -np.inf)
    np.maximum.at(best, where, cosines)
    return own, best
