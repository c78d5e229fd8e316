"""The words of texts as they are written, and which of them a misspelt one may be.

Near is what takes few typing errors: a letter put in, left out, another one, or two letters swapped
(Damerau 1964, *A Technique for Computer Detection and Correction of Spelling Errors*; the distance
of optimal string alignment). The beginning of a word is seldom wrong. Of a hundred thousand words
numpy leaves some hundreds by their length and letters, which are then compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from anaphora.core.analyser import SHORTEST_FORM

_LONG: Final = 8
"""From so many letters on two errors are one word still; below, one."""

_AT_MOST: Final = 400
"""Words that are compared letter by letter: those that share most letters."""


class Vocabulary:
    """Distinct folded words. Immutable."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = list(words)
        # One text: looking through it is far quicker than through its words.
        self._lines = "\n".join(("", *self._words, ""))
        self._lengths = np.array([len(word) for word in self._words], np.int16)
        self._letters = np.array([_letters(word) for word in self._words], np.uint32)

    def __len__(self) -> int:
        return len(self._words)

    def near(self, word: str) -> list[tuple[int, str]]:
        """(errors, word) of those that `word` may be a misspelling of, those of fewest errors.

        None where it is too short to tell.
        """
        if len(word) < SHORTEST_FORM or not self._words:
            return []
        most = 2 if len(word) >= _LONG else 1
        apart = np.bitwise_count(self._letters ^ np.uint32(_letters(word)))
        fits = (np.abs(self._lengths - len(word)) <= most) & (apart <= 2 * most)
        places = np.flatnonzero(fits)
        if len(places) > _AT_MOST:
            places = places[np.argsort(apart[places], kind="stable")[:_AT_MOST]]
        found: list[tuple[int, str]] = []
        for place in places.tolist():
            other = self._words[place]
            if other[0] == word[0] or other[:2] == word[1::-1]:
                count = errors(word, other, most)
                if 0 < count <= most:
                    most = count
                    found.append((count, other))
        return sorted(one for one in found if one[0] == most)

    def holding(self, word: str, least: int) -> list[str]:
        """Longer words, by `least` letters or more, that begin or end with `word`."""
        found: list[str] = []
        at = self._lines.find(word) if word else -1
        while at >= 0:
            start, end = self._lines.rfind("\n", 0, at) + 1, self._lines.index("\n", at)
            ends = at == start or at + len(word) == end
            if ends and end - start >= len(word) + least:
                found.append(self._lines[start:end])
            at = self._lines.find(word, at + 1)
        return list(dict.fromkeys(found))


def errors(one: str, other: str, most: int) -> int:
    """How many typing errors lie between two words; any number above `most` for more than that."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: Sequence[int] = ()
    last: Sequence[int] = range(len(other) + 1)
    for row, letter in enumerate(one, 1):
        now = [row] * (len(other) + 1)
        for column, against in enumerate(other, 1):
            best = last[column - 1] + (letter != against)
            best = min(best, last[column] + 1, now[column - 1] + 1)
            swapped = row > 1 and column > 1 and letter == other[column - 2]
            if swapped and one[row - 2] == against:
                best = min(best, before[column - 2] + 1)
            now[column] = best
        if min(now) > most:
            return most + 1
        before, last = last, now
    return last[-1]


def _letters(word: str) -> int:
    """Which letters a word has, as bits; others than Latin ones share six."""
    bits = 0
    for letter in word:
        place = ord(letter) - 97
        bits |= 1 << (place if 0 <= place < 26 else 26 + ord(letter) % 6)
    return bits
