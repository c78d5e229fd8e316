"""The words of a text, one space apart: what the patterns of some languages are read on.

A possessive and marks of emphasis are left out, "mid-March" is two words, a comma stands as ",",
any other break as ".". Joined by a mark several words are one (a path, a version, an identifier),
so that no pattern finds a time within it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"\w+(?:[-.'’/:@–#+=\\]+\w+)*")
_JOINS = "_-.'’/:@–#+=\\"
# Marks that may stand inside a phrase without ending it.
_SOFT = " \t\r\n\f\v\u00a0*_\"'“”‘’()[]{}<>«»~`"
_PREFIXES = frozenset({"early", "mid", "late"})


@dataclass(frozen=True, slots=True)
class Words:
    """Words in one line, with a space before each, and their places in the text by those here."""

    line: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]


def small_letters(text: str) -> str:
    """A text in small letters, as long as it was: a dotted capital I would become two."""
    return text.replace("İ", "i").lower()


def line_of(text: str) -> str:
    """The line alone, of a text that is not long."""
    parts: list[str] = []
    for gap, raw in zip(_WORD.split(text), _WORD.findall(text), strict=False):
        if gap != " " and (mark := gap.strip(_SOFT)):
            parts.append("," if mark == "," else ".")
        parts += _known_run(raw)
    return "".join(f" {part}" for part in parts)


# A question is often asked again.
@lru_cache(maxsize=64)
def words_of(text: str) -> Words:
    """The words of a text. They keep their capitals, but for those with letters beyond ASCII."""
    words: list[tuple[str, int, int]] = []
    end = 0
    for match in _WORD.finditer(text):
        start = match.start()
        gap = text[end:start]
        if gap != " " and (mark := gap.strip(_SOFT)):
            words.append(("," if mark == "," else ".", end, start))
        end = match.end()
        for word, first, last in _split_run(match.group()):
            words.append((word, start + first, start + last))
    parts: list[str] = []
    starts, ends = {}, {}
    at = 0
    for word, start, end in words:
        parts.append(" " + word)
        starts[at + 1] = start
        at += len(parts[-1])
        ends[at] = end
    return Words("".join(parts), starts, ends)


def _split_run(raw: str) -> list[tuple[str, int, int]]:
    """The words that marks join in a text, as they are read, each with its place."""
    # An underscore joins like a letter, and may hide a mark behind it ("_:the").
    plain = raw.strip(_JOINS)
    start = raw.find(plain)
    if plain[-2:].lower() in {"'s", "’s"}:
        plain = plain[:-2]
    head, dash, _ = plain.partition("-")
    words: list[tuple[str, int, int]] = []
    if dash and head.lower() in _PREFIXES:
        words.append((head, start, start + len(head)))
        plain, start = plain[len(head) + 1 :], start + len(head) + 1
    if plain:
        read = plain if plain.isascii() else plain.lower().replace("’", "'")
        words.append((read, start, start + len(plain)))
    return words


@lru_cache(maxsize=8192)
def _known_run(raw: str) -> tuple[str, ...]:
    return tuple(word for word, _, _ in _split_run(raw))
