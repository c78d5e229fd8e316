"""The measures of the field, each as its source defines it.

In: for one question the messages in the order in which a ranking gave them, and those that answer
it. Out: numbers from 0 to 1. A ranking may be counted in units larger than a message: rounds (a
user's message and what answers it) or sessions; a unit stands where its first message stands, so a
session counts by its best message. Nothing here reads a file or asks a memory.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank

Key = TypeVar("Key", bound=Hashable)

DEPTHS: Final = (5, 10, 20)
"""How many units from the top are looked at, as the field reports them."""


@dataclass(frozen=True, slots=True)
class Ranking(Generic[Key]):
    """One question: its category, the messages best first, and those that answer it."""

    category: str
    ranked: tuple[Key, ...]
    relevant: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one question, or the means over several.

    `recall`: the share of the relevant units among the first k (Manning, Raghavan, Schütze, 2008;
    LMEB's recall_at_k). `any`: 1 where one of them is there, what most reports call R@k. `all`: 1
    where all are (LongMemEval's recall_any and recall_all). `mrr` over all that was returned,
    `ndcg` of the first ten with gain 1 or 0 and discount log2(place + 1) (LMEB's main score).
    """

    recall: Mapping[int, float]
    any: Mapping[int, float]
    all: Mapping[int, float]
    mrr: float
    ndcg: float


def units(ranked: Iterable[Key], unit_of: Mapping[Key, Hashable]) -> tuple[Hashable, ...]:
    """The units of messages in the order of their best message, each once.

    A message of no unit is one of its own.
    """
    return tuple(dict.fromkeys(unit_of.get(key, key) for key in ranked))


def measure(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> Measured:
    """All measures of one question. Raises `ValueError` where nothing is relevant."""
    recall = {k: recall_at_k(ranked, relevant, k) for k in DEPTHS}
    return Measured(
        recall=recall,
        any={k: float(share > 0.0) for k, share in recall.items()},
        all={k: float(share == 1.0) for k, share in recall.items()},
        mrr=reciprocal_rank(ranked, relevant),
        ndcg=ndcg_at_k(ranked, relevant, 10),
    )


def mean(several: Sequence[Measured]) -> Measured:
    """The mean of each measure: micro, each question the same. Zeros where there are none."""
    count = max(1, len(several))

    def of(values: Iterable[float]) -> float:
        return math.fsum(values) / count

    return Measured(
        recall={k: of(one.recall[k] for one in several) for k in DEPTHS},
        any={k: of(one.any[k] for one in several) for k in DEPTHS},
        all={k: of(one.all[k] for one in several) for k in DEPTHS},
        mrr=of(one.mrr for one in several),
        ndcg=of(one.ndcg for one in several),
    )


def macro(by_category: Mapping[str, Sequence[Measured]]) -> Measured:
    """The mean over categories of their means, each category the same: how LMEB reports a set."""
    return mean([mean(several) for several in by_category.values() if several])


def message_recall(
    ranked_units: Sequence[Collection[Hashable]], relevant: Collection[Hashable], k: int
) -> float:
    """The share of the relevant *messages* that are in the first `k` units.

    Ogham's recall on BEAM (ogham-mcp, benchmarks/beam_benchmark.py): a unit is a round, the gold
    ids are those of messages. Raises `ValueError` where nothing is relevant.
    """
    held = [key for unit in ranked_units[:k] for key in unit]
    return recall_at_k(held, relevant, len(held))


def ogham_ndcg(
    ranked_units: Sequence[Collection[Hashable]], relevant: Collection[Hashable]
) -> float:
    """Ogham's NDCG@10: a round with any gold message gains 1, but the ideal has one round for each
    gold message. Where a round holds two of them, a perfect ranking has less than 1."""
    wanted = set(relevant)
    gains = (1 / math.log2(n + 2) for n, unit in enumerate(ranked_units[:10]) if wanted & set(unit))
    ideal = math.fsum(1 / math.log2(n + 2) for n in range(min(len(wanted), 10)))
    return math.fsum(gains) / ideal if ideal else 0.0


def longmemeval_ndcg(ranked: Sequence[Hashable], relevant: Collection[Hashable], k: int) -> float:
    """LongMemEval's ndcg_any@k (src/retrieval/eval_utils.py): as nDCG, but the discount is
    log2(place), so that the first two places count alike."""
    wanted = set(relevant)

    def gain(hits: Iterable[bool]) -> float:
        return math.fsum(1 / math.log2(max(n, 2)) for n, hit in enumerate(hits, 1) if hit)

    ideal = gain([True] * min(len(wanted), k))
    return gain(one in wanted for one in ranked[:k]) / ideal if ideal else 0.0


def with_empty(shares: Sequence[float], empty: int, worth: float = 1.0) -> float:
    """The mean of `shares` with `empty` questions more, without evidence, counted as `worth`.

    How a figure looks where questions that ask for nothing are counted as answered.
    """
    count = len(shares) + empty
    return (math.fsum(shares) + worth * empty) / count if count else 0.0
