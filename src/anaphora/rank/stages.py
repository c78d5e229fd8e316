"""The order of events: turns from every stage of a history, instead of ten from one stage of it.

    total = score of the turn - spread · min(2, better turns of its stage)

"In which order did I bring up …" asks for one turn of each stage, and the turns that are most like
such a question are mostly of the stage that has most about the topic. The best candidates are cut
into stages of as many turns each, by when they were said. Within a stage the order stays. Only
questions that ask for an order are read so: lists and summaries lose by it (decision 0007).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.turn_table import TurnTable
from anaphora.rank.turns import DEFAULT_WEIGHTS, TurnScores, Weights, best_rows

STAGES: Final = 5
CANDIDATES: Final = 60
"""The best turns, of which the stages are made. What is not among them is the second of its stage
at best, and mostly far below."""

MOST: Final = 2
"""Better turns of the same stage that count."""


def spread_over_stages(
    table: TurnTable, scores: TurnScores, weights: Weights = DEFAULT_WEIGHTS
) -> TurnScores:
    """`scores` of M rows with one more factor, `spread`, 0 or less: see the module's formula.

    No total falls below 0 by it, and with no more candidates than stages nothing changes.
    """
    best_indexes = best_rows(table, scores, CANDIDATES)
    if len(best_indexes) <= STAGES:
        return scores
    better_counts = np.where(scores.found, np.float32(MOST), np.float32(0.0))
    rows = scores.rows[best_indexes]
    ts = table.ts[rows]
    keys: tuple[NDArray[Any], ...] = (table.position[rows], table.conversation[rows])
    # Without all times, the order of the threads and of their turns has to do.
    order = np.lexsort(keys if np.isnan(ts).any() else (*keys, ts))
    stage = np.empty(len(rows), np.intp)
    stage[order] = np.arange(len(rows)) * STAGES // len(rows)
    for number in range(STAGES):
        members = best_indexes[stage == number]
        better_counts[members] = np.minimum(np.arange(len(members)), MOST)
    losses = better_counts * np.float32(weights.spread / weights.scale)
    spread = -np.minimum(losses, np.maximum(scores.total, 0.0))
    return replace(
        scores, total=scores.total + spread, factors={**scores.factors, "spread": spread}
    )
