"""Questions over a pool of passages, before it is known which of the others mislead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a pool: places of what answers it, and of what must not be held against it.

    `meant` is what the product would embed of it, where that is not the question itself. `also` are
    texts from outside the pool that answer it, `misleading` places that were written to be mistaken
    for an answer.
    """

    key: str
    query: str
    positives: frozenset[int]
    neutral: frozenset[int] = frozenset()
    also: tuple[str, ...] = ()
    meant: str = ""
    misleading: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """The passages of one story, chat or package in one lane, with the questions about them."""

    source: str
    lane: str
    group: str
    passages: Sequence[str]
    asked: Sequence[Asked]
    author: str = ""
    language: str = field(default="en")
