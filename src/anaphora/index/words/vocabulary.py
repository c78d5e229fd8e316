"""The words of texts as written, and which of them a misspelt word may stand for.

The distance counts typing errors: a letter inserted, left out or replaced, or two letters swapped
(Damerau 1964, *A Technique for Computer Detection and Correction of Spelling Errors*; the distance
of optimal string alignment). The beginning of a word is seldom wrong. Of a hundred thousand words,
numpy selects some hundreds by length and letters, which are then compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.language.analyser import SHORTEST_FORM

_LONG: Final = 8
"""From so many letters a word may have two errors; below, one."""

_LINE_END, _FIRST_LATIN, _LATIN, _OTHERS = map(np.uint32, (10, 97, 26, 6))

_AT_MOST: Final = 400
"""The most words that are compared letter by letter: those that share most letters."""


class Vocabulary:
    """Distinct folded words. Immutable."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = list(words)
        # One text: searching it is far quicker than searching word by word.
        self._lines = "\n".join(("", *self._words, ""))
        letters = _code_points(self._lines)
        ends = np.flatnonzero(letters == _LINE_END)
        self._lengths = np.diff(ends) - 1
        self._letters = np.bitwise_or.reduceat(_bits(letters), ends[:-1]) if self._words else ends
        # The first two letters of each word; the second may be the end of its line.
        self._first, self._second = letters[ends[:-1] + 1], letters[ends[:-1] + 2]

    def __len__(self) -> int:
        return len(self._words)

    def near(self, word: str) -> list[tuple[int, str]]:
        """(errors, word) of the words with the fewest errors that `word` may be a misspelling of.

        Empty if it is too short to tell.
        """
        if len(word) < SHORTEST_FORM or not self._words:
            return []
        most_errors = 2 if len(word) >= _LONG else 1
        letters = _code_points(word)
        apart = np.bitwise_count(self._letters ^ np.bitwise_or.reduce(_bits(letters)))
        fits = (np.abs(self._lengths - len(word)) <= most_errors) & (apart <= 2 * most_errors)
        candidates = np.flatnonzero(fits)
        if len(candidates) > _AT_MOST:
            candidates = candidates[np.argsort(apart[candidates], kind="stable")[:_AT_MOST]]
        first_letters, second = self._first[candidates], self._second[candidates]
        is_swapped = (first_letters == letters[1]) & (second == letters[0])
        corrections: list[tuple[int, str]] = []
        for number in candidates[(first_letters == letters[0]) | is_swapped].tolist():
            candidate = self._words[number]
            count = errors(word, candidate, most_errors)
            if 0 < count <= most_errors:
                most_errors = count
                corrections.append((count, candidate))
        return sorted(correction for correction in corrections if correction[0] == most_errors)

    def holding(self, word: str, least: int) -> list[str]:
        """Longer words, by `least` letters or more, that begin or end with `word`."""
        longer: list[str] = []
        at = self._lines.find(word) if word else -1
        while at >= 0:
            start, end = self._lines.rfind("\n", 0, at) + 1, self._lines.index("\n", at)
            ends = at == start or at + len(word) == end
            if ends and end - start >= len(word) + least:
                longer.append(self._lines[start:end])
            at = self._lines.find(word, at + 1)
        return list(dict.fromkeys(longer))


def errors(word: str, target: str, most: int) -> int:
    """How many typing errors lie between two words; any number above `most` for more than that."""
    # A common beginning and end has no errors, and takes long to compare.
    begin, end = 0, min(len(word), len(target))
    while begin < end and word[begin] == target[begin]:
        begin += 1
    shared_length = 0
    while shared_length < end - begin and word[-1 - shared_length] == target[-1 - shared_length]:
        shared_length += 1
    word, target = (
        word[begin : len(word) - shared_length],
        target[begin : len(target) - shared_length],
    )
    if abs(len(word) - len(target)) > most:
        return most + 1
    row_before_last: Sequence[int] = ()
    last_row: Sequence[int] = range(len(target) + 1)
    for row, letter in enumerate(word, 1):
        this_row = [row] * (len(target) + 1)
        for column, against in enumerate(target, 1):
            fewest_errors = last_row[column - 1] + (letter != against)
            fewest_errors = min(fewest_errors, last_row[column] + 1, this_row[column - 1] + 1)
            is_swapped = row > 1 and column > 1 and letter == target[column - 2]
            if is_swapped and word[row - 2] == against:
                fewest_errors = min(fewest_errors, row_before_last[column - 2] + 1)
            this_row[column] = fewest_errors
        if min(this_row) > most:
            return most + 1
        row_before_last, last_row = last_row, this_row
    return last_row[-1]


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _bits(letters: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Each letter as a bit; letters other than Latin ones share six, an end of line has none."""
    positions = letters - _FIRST_LATIN
    positions = np.where(positions < _LATIN, positions, _LATIN + letters % _OTHERS)
    bits: NDArray[np.uint32] = np.left_shift(np.uint32(1), positions, dtype=np.uint32)
    bits[letters == _LINE_END] = 0
    return bits
