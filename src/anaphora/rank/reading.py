"""Puts candidates in the order of what a reader made of them, within a window of the best ones.

    score = total + weight · (clip(log-odds, UNREAD, MOST) − UNREAD)

The reader is one judge among others: its order alone is worse than the sum. It brings forward what
answers and puts nothing back, so that a candidate beyond the window, or one too long to be read,
stands where it would stand among candidates of which the reader thinks nothing. A window that does
not depend on how many hits are wanted keeps the first hits the same, however many follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.values.fitted import fitted

Floats = NDArray[np.float64]

WEIGHTS: Final[Mapping[str, float]] = fitted("reading")
"""What a score gains by lane for each unit of log-odds. A good hit has 0.4 to 0.6. Chosen on chats
1 to 5; among facts the order is right as often without it (docs/decisions/0056)."""

MOST: Final = 6.0
"""Log-odds beyond which a reader is not surer: one judgement must not outweigh all other parts."""

UNREAD: Final = -3.0
"""The log-odds up to which the score stays as it is: about those of any candidate."""


def read_scores(totals: Sequence[float], log_odds: Floats, lane: str) -> Floats:
    """New scores of the candidates in the window, shape (N,), in the order of `totals`.

    `totals` are their scores, `log_odds` (N,) that they answer, NaN for those that were not read.
    No score is below its total, so that none falls behind what was not read.
    """
    odds = np.nan_to_num(log_odds, nan=UNREAD)
    scores: Floats = np.asarray(totals, np.float64) + WEIGHTS[lane] * (
        np.clip(odds, UNREAD, MOST) - UNREAD
    )
    return scores
