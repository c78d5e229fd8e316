from __future__ import annotations

from itertools import permutations
from math import log2

import pytest
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from hypothesis import given
from hypothesis import strategies as st

RANKINGS = st.lists(st.integers(0, 12), unique=True, max_size=12)
RELEVANT = st.sets(st.integers(0, 12), min_size=1, max_size=5)


@given(RANKINGS, RELEVANT, st.integers(1, 15))
def test_recall_counts_what_was_found(ranked: list[int], relevant: set[int], k: int) -> None:
    """Recall at k is the number of relevant ids in the first k places over all relevant ones."""
    found = sum(one in ranked[:k] for one in relevant)
    assert recall_at_k(ranked, relevant, k) == found / len(relevant)


@given(RANKINGS, RELEVANT)
def test_reciprocal_rank_is_of_the_first(ranked: list[int], relevant: set[int]) -> None:
    """The reciprocal rank is 1 over the place of the first relevant id, 0 without one."""
    places = [place for place, one in enumerate(ranked, 1) if one in relevant]
    assert reciprocal_rank(ranked, relevant) == (1 / places[0] if places else 0.0)


@given(
    st.lists(st.integers(0, 5), unique=True, min_size=1, max_size=5),
    st.sets(st.integers(0, 5), min_size=1),
    st.integers(1, 6),
)
def test_ndcg_is_gain_over_the_best_gain(ranked: list[int], relevant: set[int], k: int) -> None:
    """nDCG at k is the discounted gain over the highest that any order of all ids could have."""

    def gain(order: tuple[int, ...] | list[int]) -> float:
        return sum(1 / log2(place + 1) for place, one in enumerate(order[:k], 1) if one in relevant)

    best = max(gain(order) for order in permutations(range(6)))
    assert ndcg_at_k(ranked, relevant, k) == pytest.approx(gain(ranked) / best)


def test_an_id_that_comes_twice_counts_once() -> None:
    """A ranking that repeats a relevant id gains nothing by it."""
    assert recall_at_k(["a", "a"], {"a", "b"}, 2) == 0.5
    assert ndcg_at_k(["a", "a"], {"a"}, 2) == 1.0


def test_a_question_without_evidence_cannot_be_measured() -> None:
    """Without relevant ids there is no result, and none is made up."""
    nothing: set[str] = set()
    with pytest.raises(ValueError, match="without relevant"):
        recall_at_k(["a"], nothing, 1)
    with pytest.raises(ValueError, match="without relevant"):
        reciprocal_rank(["a"], nothing)
    with pytest.raises(ValueError, match="without relevant"):
        ndcg_at_k(["a"], nothing, 1)
