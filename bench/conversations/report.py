"""What a benchmark run found, as frozen values, and the sums that make them.

In: one `Outcome` a question and ranking, seconds. Out: `BenchmarkReport`. It measures nothing
itself. Means are over questions: each question counts the same, whatever its evidence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anaphora.values.conversations import ImportProblem
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank

ROWS = (("BM25 alone", "words"), ("cosine alone", "vector"), ("full ranking", "hybrid"))
"""The rankings compared: how they are called, and the `mode` of recall that gives them."""

Key = tuple[str, int]
"""A turn: conversation id and index; index -1 stands for the whole conversation."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over `questions`, each from 0 to 1; all 0 when there are none.

    `recall_at_k`: the share of a question's evidence among the first k turns. `mrr`: 1 over the
    rank of the first evidence. `ndcg_at_10`: gains of 1 discounted by log2 of the rank.
    """

    questions: int
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    mrr: float
    ndcg_at_10: float


@dataclass(frozen=True, slots=True)
class Row:
    """One ranking's scores, over all questions and by category."""

    name: str
    mode: str
    overall: Scores
    by_category: Mapping[str, Scores]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of `calls` calls: the median and the 99th percentile (nearest rank)."""

    calls: int
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """A run: what was asked, how each ranking did, and what it cost.

    `recall` times whole calls of the full ranking, `recall_without_embedding` the same calls less
    the embedding of their query, `repeated` the same question asked again. `import_seconds` covers
    writing, embedding and indexing; `embed_seconds` is the embedder's share. `degraded` counts the
    answers that lacked a part, by part: any figure there makes the scores meaningless.
    """

    format: str
    embedder: str
    chats: int
    conversations: int
    turns: int
    questions: Mapping[str, int]
    left_out: Mapping[str, int]
    unresolved: int
    rows: tuple[Row, ...]
    recall: Latency
    recall_without_embedding: Latency
    repeated: Latency
    texts_embedded: int
    embed_seconds: float
    texts_per_second: float
    import_seconds: float
    home_bytes: int
    degraded: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[ImportProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one ranking gave for one question: keys best first, and the keys that were wanted."""

    category: str
    ranked: tuple[Key, ...]
    relevant: frozenset[Key]


def score_rows(outcomes: Mapping[str, Sequence[Outcome]]) -> tuple[Row, ...]:
    """The rows of a report out of each mode's outcomes; categories in alphabetical order."""
    rows = []
    for name, mode in ROWS:
        found = outcomes[mode]
        categories = sorted({outcome.category for outcome in found})
        rows.append(
            Row(
                name,
                mode,
                _scores(found),
                {c: _scores([o for o in found if o.category == c]) for c in categories},
            )
        )
    return tuple(rows)


def _scores(outcomes: Sequence[Outcome]) -> Scores:
    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values) if values else 0.0

    return Scores(
        questions=len(outcomes),
        recall_at_5=mean([recall_at_k(o.ranked, o.relevant, 5) for o in outcomes]),
        recall_at_10=mean([recall_at_k(o.ranked, o.relevant, 10) for o in outcomes]),
        recall_at_20=mean([recall_at_k(o.ranked, o.relevant, 20) for o in outcomes]),
        mrr=mean([reciprocal_rank(o.ranked, o.relevant) for o in outcomes]),
        ndcg_at_10=mean([ndcg_at_k(o.ranked, o.relevant, 10) for o in outcomes]),
    )


def latency(seconds: Sequence[float]) -> Latency:
    """The percentiles of a list of durations in seconds; zeros for an empty one."""
    ordered = sorted(seconds)

    def at(share: float) -> float:
        place = max(0, math.ceil(share * len(ordered)) - 1)
        return 1000 * ordered[place] if ordered else 0.0

    return Latency(len(ordered), at(0.5), at(0.99))
