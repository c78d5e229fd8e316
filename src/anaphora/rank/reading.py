"""Puts candidates in the order of what a reader made of them, within a window of the best ones.

    score = total + weight · clip(log-odds)

The reader is one judge among others: its order alone is worse than the sum. Only the first
candidates are read, and they change places among each other alone: none of them falls behind the
first one that was not read, and none of those comes before them. A window that does not depend on
how many hits are wanted keeps the first hits the same, however many follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WEIGHTS: Final[Mapping[str, float]] = {"turns": 0.02, "facts": 0.02}
"""What a score gains by lane for each unit of log-odds. A good hit has 0.4 to 0.6."""

MOST: Final = 6.0
"""Log-odds beyond which a reader is not surer: one judgement must not outweigh all other parts."""

REPLACES_SHARE: Final = 0.0
"""How much of the probability of a replacement is the reader's, where the wording of both does not
tell; the rest is that of `rank/replacement`. 0: the reader is not asked."""


def read_scores(totals: Sequence[float], log_odds: Floats, lane: str) -> Floats:
    """New scores of the candidates that were read, shape (N,), in the order of `totals`.

    `totals` are the scores of the N that were read and of those behind them, best first, each 0 or
    more; `log_odds` (N,) that they answer. No score is below the total of the first one behind, and
    of two that stand as high as that one the better total comes first (a stable sort by score).
    """
    count = len(log_odds)
    behind = float(totals[count]) if len(totals) > count else 0.0
    gained = WEIGHTS[lane] * np.clip(log_odds, -MOST, MOST)
    scores: Floats = np.maximum(np.asarray(totals[:count], np.float64) + gained, behind)
    return scores


def shared_probability(own: float, read: float, share: float) -> float:
    """The mean of two probabilities, of which the reader's counts `share`."""
    return (1.0 - share) * own + share * read
