"""Reciprocal-rank fusion of ranked lists. Pure: lists in, a list out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

__all__ = ["fused"]

Id = TypeVar("Id", bound=Hashable)


def fused(lists: Sequence[Sequence[Id]], k: int = 60) -> list[Id]:
    """Ids by the sum of 1 / (k + place) over the lists that name them, best first.

    Cormack, Clarke and Büttcher, Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods (2009), k = 60. An id counts once a list, where it stands first; ties keep the
    order in which ids were first met.
    """
    scores: dict[Id, float] = {}
    for ranked in lists:
        for place, one in enumerate(dict.fromkeys(ranked), 1):
            scores[one] = scores.get(one, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda one: -scores[one])
