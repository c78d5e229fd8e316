from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anaphora.rank.budget import LEAST, LONG, PATIENCE, Filled, fill, token_cost

SIZES = st.lists(
    st.one_of(st.integers(0, 40), st.integers(LONG - 2, LONG + 2), st.integers(0, 30_000)),
    max_size=30,
)


def cost(taken: list[Filled[int]], sizes: list[int]) -> int:
    return sum(sizes[one.hit] if one.room is None else one.room for one in taken)


@given(SIZES, st.integers(0, 10), st.integers(0, 3_000))
def test_the_budget_holds(sizes: list[int], top_k: int, budget: int) -> None:
    """Taken hits keep their order and fit the budget, unless a single one is all there is."""
    taken = fill(range(len(sizes)), sizes.__getitem__, top_k=top_k, budget=budget)
    hits = [one.hit for one in taken]
    assert hits == sorted(set(hits))
    assert len(taken) <= top_k
    if len(taken) > 1:
        assert cost(taken, sizes) <= budget
    elif taken:
        # Where one alone is more than the budget, it is no more than fits into a short text.
        assert cost(taken, sizes) <= max(budget, LONG)
    assert hits[:1] == ([0] if top_k and sizes else [])


@given(SIZES, st.integers(1, 10), st.integers(1, 3_000))
def test_what_was_passed_over_did_not_fit(sizes: list[int], top_k: int, budget: int) -> None:
    """A hit is passed over only when neither it nor a passage of it fitted at its turn."""
    taken = fill(range(len(sizes)), sizes.__getitem__, top_k=top_k, budget=budget)
    for hit in range(max((one.hit for one in taken), default=-1)):
        left = budget - cost([one for one in taken if one.hit < hit], sizes)
        if hit not in {one.hit for one in taken}:
            assert sizes[hit] > left
            assert sizes[hit] <= LONG or left < LEAST


@given(SIZES, st.integers(1, 10), st.integers(0, 3_000))
def test_only_a_long_text_that_does_not_fit_is_shortened(
    sizes: list[int], top_k: int, budget: int
) -> None:
    """A passage stands for a text that is long and does not fit, and is no longer than a window."""
    left = budget
    for one in fill(range(len(sizes)), sizes.__getitem__, top_k=top_k, budget=budget):
        size = sizes[one.hit]
        if one.room is not None:
            assert size > max(LONG, left)
            assert LEAST <= one.room <= LONG
        left -= size if one.room is None else one.room


def test_a_long_answer_does_not_take_all_the_room() -> None:
    """Of an answer of an hour a passage comes, first or not, and leaves room for the others."""
    sizes = {"a": 25_000, "b": 90, "c": 25_000, "d": 90}
    taken = fill("abcd", sizes.__getitem__, top_k=4, budget=2_500)
    assert taken == [Filled("a", LONG), Filled("b"), Filled("c", LONG), Filled("d")]


def test_sizes_are_read_only_while_it_pays() -> None:
    """After a number of hits that did not fit, no more of them are sized."""
    sized: list[int] = []

    def size(hit: int) -> int:
        sized.append(hit)
        return 5 if hit == 0 else 400

    assert fill(range(10_000), size, top_k=6, budget=100) == [Filled(0)]
    assert len(sized) == PATIENCE + 1


@given(st.text())
def test_tokens_are_bytes_by_four(text: str) -> None:
    """A token is four bytes of UTF-8, rounded up; lone surrogates count too."""
    size = len(text.encode("utf-8", "surrogatepass"))
    assert (token_cost(text) - 1) * 4 < size <= token_cost(text) * 4
    assert token_cost("\ud800") == 1
