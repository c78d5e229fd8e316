"""By what a text is known that may hold a secret: most texts, and most lines, have none of it.

The patterns of secrets are slow, to load and to try: they are for what has such a sign.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final

from anaphora.ingest.secrets.forms import DATA

WORDS: Final[dict[str, str]] = DATA["words"]
"""Lists of words, by their names in the file of patterns."""
# No name is without one of these; looking for them is much faster than the patterns.
NAME_PARTS = ("pass", "pwd", "secret", "token", "credential", "key", "contrase")
SAID_PARTS: Final = (*WORDS["parts"].split(";"), *WORDS["open_parts"].split(";"))
"""No sentence says a short secret without one of these, in lower case; but see `has_pin`."""
COMMANDS: Final[tuple[tuple[str, str], ...]] = tuple(DATA["commands"].items())
"""By the word without which there is none: what a command is given."""
_PIN_PART: Final = re.compile(r"pin.{0,60}?\d{4}|\d{4}.{0,40}?pin", re.DOTALL)


def has_pin(lowered: str) -> bool:
    """Whether a text has what may be a PIN: its name is a part of too many words."""
    return "pin" in lowered and _PIN_PART.search(lowered) is not None


# Most lines of a program hold nothing that a secret could be, and patterns are slow: only the lines
# that may are looked through.

Finder = Callable[[int], int]
"""The first position from an offset on, -1 if there is none."""


class PickedLines:
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
        """The position in the whole text of a position in `text`."""
        line = bisect_right(self._at, at) - 1
        return self._from[line] + at - self._at[line]


def picked(text: str, find: Finder) -> PickedLines:
    """The lines of `text` in which `find` finds something."""
    spans: list[tuple[int, int]] = []
    at = 0
    while (position := find(at)) >= 0:
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        spans.append((text.rfind("\n", 0, position) + 1, end))
        at = end + 1
    return PickedLines(text, spans)


def matching(text: str, pattern: re.Pattern[str]) -> Finder:
    """Finds where `pattern` matches."""

    def find(at: int) -> int:
        match = pattern.search(text, at)
        return match.start() if match is not None else -1

    return find


def first_of(text: str, parts: Iterable[str]) -> Finder:
    """Finds the first of these texts, whichever it is."""
    coming = {part: at for part in parts if (at := text.find(part)) >= 0}

    def find(at: int) -> int:
        for part, position in coming.items():
            if 0 <= position < at:
                coming[part] = text.find(part, at)
        return min((position for position in coming.values() if position >= 0), default=-1)

    return find
