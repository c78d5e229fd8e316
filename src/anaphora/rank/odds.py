"""Probabilities as log-odds, and back: what the judges of ranking add up."""

from __future__ import annotations

import math
from typing import Final

_MOST: Final = 700.0
"""Beyond these log-odds exp overflows, and both ends are certain anyway."""


def probability_of(odds: float) -> float:
    """The probability, 0 to 1, of log-odds: the logistic function."""
    return 1.0 / (1.0 + math.exp(-max(-_MOST, min(_MOST, odds))))


def log_odds_of(probability: float, least: float) -> float:
    """The log-odds of a probability, which counts as at least `least` and at most 1 − `least`."""
    share = min(max(probability, least), 1.0 - least)
    return math.log(share / (1.0 - share))
