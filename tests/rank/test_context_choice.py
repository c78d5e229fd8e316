"""What is kept of ranked sections: no near-duplicates, a spread over kinds and files."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora.rank.context.choice import prune, shingles, spread

texts = st.lists(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), max_size=12), max_size=10
)


@pytest.mark.promise("context.spread")
def test_a_near_duplicate_goes() -> None:
    """Of two texts that are nearly the same the better ranked stays; a summary stands beside."""
    words = [f"w{n}" for n in range(40)]
    sketches = {
        0: shingles(words),
        1: shingles([*words[:39], "other"]),
        2: shingles(words[:8]),
        3: shingles([f"x{n}" for n in range(40)]),
    }
    assert prune([0, 1, 2, 3], sketches) == [0, 2, 3]
    assert prune([1, 0, 2, 3], sketches) == [1, 2, 3]


@settings(deadline=None)
@given(texts)
def test_pruning_keeps_the_best_and_repeats_nothing(found: list[list[str]]) -> None:
    """The first stays, equal texts come once, the order stays; pruning again changes nothing."""
    sketches = {n: shingles(text) for n, text in enumerate(found)}
    kept = prune(range(len(found)), sketches)
    assert kept == sorted(kept)
    assert kept[:1] == list(range(len(found)))[:1]
    assert prune(kept, sketches) == kept
    full = [sketches[n] for n in kept if sketches[n]]
    assert len(full) == len(set(full))


@pytest.mark.promise("context.spread")
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("smod"), st.sampled_from(["a", "b", "c", None])), max_size=30
    ),
    st.integers(0, 12),
)
def test_a_spread_is_bounded_and_in_order(found: list[tuple[str, str | None]], limit: int) -> None:
    """It never exceeds the limit nor two of a file, keeps the order, and wastes no room."""
    kinds = {n: kind for n, (kind, _) in enumerate(found)}
    owners = {n: owner for n, (_, owner) in enumerate(found)}
    kept = spread(range(len(found)), kinds, owners, limit)
    assert kept == sorted(set(kept))
    assert len(kept) <= limit
    of_file = Counter(owners[n] for n in kept if owners[n] is not None)
    assert max(of_file.values(), default=0) <= 2
    left = [n for n in range(len(found)) if n not in kept]
    if len(kept) < limit:
        assert all(of_file[owners[n]] == 2 for n in left)


def test_four_of_a_kind_before_more() -> None:
    """A kind that fills the ranking leaves room for others, and takes what they do not need."""
    kinds = dict.fromkeys(range(10), "section") | {10: "diary", 11: "observation"}
    assert spread(range(12), kinds, {}, 6) == [0, 1, 2, 3, 10, 11]
    assert spread(range(12), kinds, {}, 8) == [0, 1, 2, 3, 4, 5, 10, 11]
