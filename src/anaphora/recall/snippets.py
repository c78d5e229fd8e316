"""The part of a text that bears on a question, and the places in it that matched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from anaphora.core.analyser import analyse

SNIPPET: Final = 240
"""Characters of a snippet."""

_READ: Final = 20_000
"""Characters of a text that are looked through."""
_WORD: Final = re.compile(r"[^\s]+")
_EDGES: Final = "\"'`()[]{}<>.,;:!?*_…"
_STARTS: Final = re.compile(r"(?:^|(?<=[.!?])\s+|\n)\s*(?=\S)")
_BACK: Final = 60


def snippet(
    text: str, terms: Sequence[str], most: int = SNIPPET
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """At most `most` characters of `text` in one line, with the most different `terms`.

    And where in it words match. A text that is short enough comes whole; "…" stands for the rest.
    """
    flat = " ".join(text[:_READ].split())
    wanted = frozenset(terms)
    found = list(_matching(flat, wanted))
    start, end = _window(flat, found, most)
    before = "…" if start else ""
    after = "…" if end < len(flat) or len(text) > _READ else ""
    shift = len(before) - start
    places = tuple((a + shift, b + shift) for a, b, _ in found if start <= a and b <= end)
    return f"{before}{flat[start:end]}{after}", places


def _matching(flat: str, wanted: frozenset[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """The words that hold wanted terms: start, end, which."""
    if not wanted:
        return
    for word in _WORD.finditer(flat):
        held = _terms_of(word[0]) & wanted
        if held:
            inner = word[0].strip(_EDGES)
            start = word.start() + word[0].find(inner) if inner else word.start()
            yield start, start + len(inner or word[0]), held


@lru_cache(maxsize=16_384)
def _terms_of(word: str) -> frozenset[str]:
    return frozenset(analyse(word))


def _window(
    flat: str, found: Sequence[tuple[int, int, frozenset[str]]], most: int
) -> tuple[int, int]:
    if len(flat) <= most:
        return 0, len(flat)
    best, start = -1, 0
    for first, _, _ in found:
        held: set[str] = set()
        for a, b, terms in found:
            if first <= a and b <= first + most - _BACK:
                held |= terms
        if len(held) > best:
            best, start = len(held), first
    # A sentence's beginning close before it reads better than the middle of one.
    begins = [match.end() for match in _STARTS.finditer(flat, max(0, start - _BACK), start + 1)]
    if start <= _BACK:
        start = 0
    elif begins:
        start = begins[-1]
    else:
        start = max(0, flat.rfind(" ", 0, max(1, start - _BACK // 2)) + 1)
    end = min(len(flat), start + most)
    if end < len(flat):
        cut = flat.rfind(" ", start + most // 2, end)
        end = cut if cut > 0 else end
    return start, end
