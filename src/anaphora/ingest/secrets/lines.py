"""Some lines of a text, to be looked through instead of all of it.

In: a text, and how to find places in it. Out: the lines that have such places, joined, and where
each place of theirs is in the whole. Most lines of a program hold nothing that a secret could be,
and patterns are slow. Linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable

Finder = Callable[[int], int]
"""The first place from an offset on, -1 where there is none."""


class Picked:
    """Lines of a text in their order: `text` joins them by line feeds."""

    def __init__(self, whole: str, spans: list[tuple[int, int]]) -> None:
        self.text = "\n".join(whole[start:end] for start, end in spans)
        self._from = [start for start, _ in spans]
        self._at: list[int] = []
        at = 0
        for start, end in spans:
            self._at.append(at)
            at += end - start + 1

    def place(self, at: int) -> int:
        """Where a place of `text` is in the whole text."""
        line = bisect_right(self._at, at) - 1
        return self._from[line] + at - self._at[line]


def picked(text: str, find: Finder) -> Picked:
    """The lines of `text` in which `find` finds something."""
    spans: list[tuple[int, int]] = []
    at = 0
    while (found := find(at)) >= 0:
        end = text.find("\n", found)
        end = len(text) if end < 0 else end
        spans.append((text.rfind("\n", 0, found) + 1, end))
        at = end + 1
    return Picked(text, spans)


def matching(text: str, pattern: re.Pattern[str]) -> Finder:
    """Finds where `pattern` matches."""

    def find(at: int) -> int:
        found = pattern.search(text, at)
        return found.start() if found is not None else -1

    return find


def first_of(text: str, parts: Iterable[str]) -> Finder:
    """Finds the first of these texts, whichever it is."""
    coming = {part: text.find(part) for part in parts}

    def find(at: int) -> int:
        for part, place in coming.items():
            if 0 <= place < at:
                coming[part] = text.find(part, at)
        return min((place for place in coming.values() if place >= 0), default=-1)

    return find
