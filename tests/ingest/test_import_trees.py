"""The law of branches: the threads together are the tree, each message once, each thread a path."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anaphora import ImportedConversation, ImportedTurn

from .conftest import Home


@st.composite
def growing_trees(draw: st.DrawFn) -> tuple[list[int | None], int, list[int], list[int]]:
    """Parents of messages 0…n-1, how many the first export has, and an order for each export."""
    size = draw(st.integers(1, 12))
    parents: list[int | None] = [
        draw(st.none() | st.integers(0, n - 1)) if n else None for n in range(size)
    ]
    first = draw(st.integers(0, size))
    return parents, first, draw(st.permutations(range(size))), draw(st.permutations(range(size)))


def exported(parents: list[int | None], count: int, order: list[int]) -> ImportedConversation:
    """The first `count` messages, parents before children, otherwise in the order given."""
    turns: dict[int, ImportedTurn] = {}

    def give(n: int) -> None:
        parent = parents[n]
        if n in turns:
            return
        if parent is not None:
            give(parent)
        above = None if parent is None else f"m{parent}"
        turns[n] = ImportedTurn(f"m{n}", above, "user", f"message {n}")

    for n in order:
        if n < count:
            give(n)
    return ImportedConversation("test", "k", "test_k", tuple(turns.values()))


@pytest.mark.promise("import.branches")
@settings(max_examples=40, deadline=None)
@given(growing_trees())
def test_threads_together_are_the_tree(
    drawn: tuple[list[int | None], int, list[int], list[int]],
) -> None:
    """However a tree grows between two imports, nothing is lost, doubled or out of line."""
    parents, first, one, two = drawn
    with TemporaryDirectory() as place, Home(Path(place)) as home:
        home.take(exported(parents, first, one))
        report = home.take(exported(parents, len(parents), two))
        assert (report.known, report.added) == (first, len(parents) - first)
        threads = home.everything()
        again = home.take(exported(parents, len(parents), one))
        assert (again.known, again.added) == (len(parents), 0)
        notes = home.origins()
    strands = {name: [int(text.split()[1]) for _, text in said] for name, said in threads.items()}
    assert sorted(n for strand in strands.values() for n in strand) == list(range(len(parents)))
    for name, strand in strands.items():
        assert all(parents[child] == parent for parent, child in pairwise(strand))
        note = notes[name]
        above = strands[note["branch_of"]][note["branch_at"]] if "branch_at" in note else None
        assert parents[strand[0]] == above
