"""How good a ranking is, given what should have been found.

Each is a number from 0 to 1. A question without relevant ids is an error: averaging it in as 0 or 1
would make up a result.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from math import log2


def recall_at_k(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """The share of `relevant` that is among the first `k` of `ranked` (each counted once).

    Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), section 8.3.
    """
    wanted = _wanted(relevant)
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def reciprocal_rank(ranked: Iterable[Hashable], relevant: Collection[Hashable]) -> float:
    """1 / place of the first relevant id, 0 if there is none; its mean over questions is the MRR.

    Voorhees, The TREC-8 Question Answering Track Report (1999).
    """
    wanted = _wanted(relevant)
    return next((1 / place for place, id in enumerate(ranked, 1) if id in wanted), 0.0)  # noqa: A001


def ndcg_at_k(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """Discounted gain of the first `k` over that of a perfect ranking, with gain 1 or 0.

    Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques (2002), discount
    1 / log2(place + 1). An id that comes twice gains once.
    """
    wanted = _wanted(relevant)
    gain, seen = 0.0, set[Hashable]()
    for place, id in enumerate(ranked[:k], 1):  # noqa: A001
        if id in wanted and id not in seen:
            gain += 1 / log2(place + 1)
            seen.add(id)
    perfect = sum(1 / log2(place + 1) for place in range(1, min(k, len(wanted)) + 1))
    return gain / perfect if perfect else 0.0


def _wanted(relevant: Collection[Hashable]) -> set[Hashable]:
    wanted = set(relevant)
    if not wanted:
        raise ValueError("a question without relevant ids cannot be measured")
    return wanted
