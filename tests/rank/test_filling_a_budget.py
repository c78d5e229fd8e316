from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.budget import PATIENCE, fill, token_cost

SIZES = st.lists(st.integers(0, 40), max_size=30)


@given(SIZES, st.integers(0, 10), st.integers(0, 100), st.sets(st.integers(0, 29)))
def test_the_budget_holds(sizes: list[int], top_k: int, budget: int, excluded: set[int]) -> None:
    """Taken hits keep their order and fit the budget, unless a single one is all there is."""
    hits = range(len(sizes))
    taken = fill(hits, sizes.__getitem__, top_k=top_k, budget=budget, excluded=excluded)
    assert taken == sorted(set(taken))
    assert len(taken) <= top_k
    assert not excluded & set(taken)
    if len(taken) > 1:
        assert sum(sizes[hit] for hit in taken) <= budget
    left = [hit for hit in hits if hit not in excluded]
    assert taken[:1] == (left[:1] if top_k else [])


@given(SIZES, st.integers(1, 10), st.integers(1, 100))
def test_what_was_passed_over_did_not_fit(sizes: list[int], top_k: int, budget: int) -> None:
    """A hit is passed over only when it did not fit into what was left at its turn."""
    taken = fill(range(len(sizes)), sizes.__getitem__, top_k=top_k, budget=budget)
    for hit in range(max(taken, default=-1)):
        before = sum(sizes[one] for one in taken if one < hit)
        assert hit in taken or before + sizes[hit] > budget


def test_exclusion_comes_before_filling() -> None:
    """A turn that the caller already has costs neither a place nor budget."""
    sizes = {"a": 90, "b": 10, "c": 10, "d": 10}
    taken = fill("abcd", sizes.__getitem__, top_k=2, budget=20, excluded={"a"})
    assert taken == ["b", "c"]


def test_smaller_hits_follow_one_that_does_not_fit() -> None:
    """A hit that does not fit is skipped, and a smaller one after it is taken."""
    assert fill("abc", {"a": 10, "b": 90, "c": 10}.__getitem__, top_k=3, budget=20) == ["a", "c"]


def test_sizes_are_read_only_while_it_pays() -> None:
    """After a number of hits that did not fit, no more of them are sized."""
    sized: list[int] = []

    def size(hit: int) -> int:
        sized.append(hit)
        return 5 if hit == 0 else 1000

    assert fill(range(10_000), size, top_k=6, budget=100) == [0]
    assert len(sized) == PATIENCE + 1


@given(st.text())
def test_tokens_are_bytes_by_four(text: str) -> None:
    """A token is four bytes of UTF-8, rounded up; lone surrogates count too."""
    size = len(text.encode("utf-8", "surrogatepass"))
    assert (token_cost(text) - 1) * 4 < size <= token_cost(text) * 4
    assert token_cost("\ud800") == 1
