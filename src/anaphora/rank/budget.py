"""Fills a budget of tokens with hits, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Hit = TypeVar("Hit")

# Sizing a hit reads its text. When the budget is nearly full, the hundredth-best hit that happens
# to be short enough is no longer worth reading for.
PATIENCE = 64

LONG: Final = 500
"""Tokens of a text that comes whole or not at all. Of a longer one that does not fit, a passage of
as many tokens comes: two windows of the bundled model, what a reader needs around a sentence."""

LEAST: Final = 100
"""Tokens of a passage that still says something."""


@dataclass(frozen=True, slots=True)
class Filled(Generic[Hit]):
    """A hit that was taken. `room`: the tokens of the passage that stands for it, None: whole."""

    hit: Hit
    room: int | None = None


def token_cost(text: str) -> int:
    """The size of a text as the seed counts it: its UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def message_cost(text: str) -> int:
    """Tokens of a message in a prompt: those of its text, and 4 that a provider adds around it."""
    return token_cost(text) + 4


def fill(
    hits: Iterable[Hit],
    size: Callable[[Hit], int],
    *,
    top_k: int,
    budget: int,
    whole: bool = False,
) -> list[Filled[Hit]]:
    """Take at most `top_k` of `hits` in their order, their sizes adding up to `budget` or less.

    Of one that does not fit a passage is taken where it is longer than `LONG`, unless texts are to
    come `whole`; else it is skipped, and smaller ones after it may still be taken. The first is
    taken in any case, so that an answer is never empty because its best hit does not fit. It ends
    after `PATIENCE` skipped ones, or with the budget used up. `top_k` of 0 or less takes nothing.
    """
    filled_hits: list[Filled[Hit]] = []
    remaining = budget
    skipped_count = 0
    for hit in hits:
        if (
            len(filled_hits) >= top_k
            or skipped_count >= PATIENCE
            or (filled_hits and remaining <= 0)
        ):
            break
        needed_size = size(hit)
        room: int | None = None
        if needed_size > remaining and (filled_hits or not whole):
            if whole:
                room = 0
            elif needed_size <= LONG:
                room = 0 if filled_hits else None
            else:
                room = min(LONG, remaining)
                if room < LEAST:
                    room = 0 if filled_hits else LEAST
        if room == 0:
            skipped_count += 1
            continue
        filled_hits.append(Filled(hit, room))
        remaining -= needed_size if room is None else room
    return filled_hits
