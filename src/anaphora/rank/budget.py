"""Fills a budget of tokens with hits, best first.

In: hits in the order of their scores, a way to size one. Out: those that go into the answer. It
never reorders, never cuts a hit, and looks up no text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

Hit = TypeVar("Hit")

# Sizing a hit reads its text. When the budget is nearly full, the hundredth-best hit that happens
# to be short enough is no longer worth reading for.
PATIENCE = 64


def token_cost(text: str) -> int:
    """The size of a text as the seed counts it: its UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def fill(
    hits: Iterable[Hit],
    size: Callable[[Hit], int],
    *,
    top_k: int,
    budget: int,
    excluded: Container[Hit] = (),
) -> list[Hit]:
    """Take at most `top_k` of `hits` in their order, their sizes adding up to `budget` or less.

    Hits in `excluded` are dropped before anything is counted. The first of the rest is taken
    whatever its size: an answer is never empty because its best hit is long. Another that does not
    fit is skipped, and smaller ones after it may still be taken; after `PATIENCE` skipped ones, or
    with the budget used up, nobody looks further. `top_k` of 0 or less takes nothing.
    """
    taken: list[Hit] = []
    left = budget
    skipped = 0
    for hit in hits:
        if len(taken) >= top_k or skipped >= PATIENCE or (taken and left <= 0):
            break
        if hit in excluded:
            continue
        needed = size(hit)
        if taken and needed > left:
            skipped += 1
            continue
        taken.append(hit)
        left -= needed
    return taken
