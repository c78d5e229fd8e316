"""What of a text shows the words of a focus: lines around them, and the words as written.

Lines are cut out in one piece and never reworded; a line that is too long by itself is cut within,
marked with "…".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from anaphora.language.analyser import analyse
from anaphora.rank.budget import token_cost
from anaphora.recall.query import first_bytes

CUT: Final = "…"

EXCERPT: Final = 160
"""Tokens of one excerpt."""

_MOST_MATCHES: Final = 400
_MOST_STARTS: Final = 60
_AGAIN: Final = 0.05
"""What a word that is there once more adds, as a share of its weight."""


@dataclass(frozen=True, slots=True)
class LineExcerpt:
    """Some lines of a text: their words, and the numbers of the first and the last one."""

    text: str
    start_line: int
    end_line: int


class Excerpts:
    """Cuts texts for one question. `weights` are its terms, folded or stemmed, with their worth."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = {term: worth for term, worth in weights.items() if term}
        longest = sorted(self._weights, key=lambda term: (-len(term), term))
        # What stands in a text tells the term: a pattern with groups takes four times as long.
        self._terms: dict[str, str] = {}
        for term in longest:
            for form in (term, f"{term[:-1]}y") if term.endswith("i") else (term,):
                self._terms.setdefault(form, term)
        self._pattern = re.compile("|".join(map(_pattern, longest))) if longest else None

    def of(self, text: str, first_line: int, limit: int) -> LineExcerpt:
        """The lines of `text` that hold most of what was asked, at most `limit` tokens of them.

        `first_line` is the number of the text's first line. Without a match, the text's beginning.
        """
        lines = text.split("\n")
        first_index, last_index = _without_blank_ends(lines)
        last_index = self._stop_before_imports(lines, first_index, last_index)
        text_shown = "\n".join(lines[first_index : last_index + 1])
        if token_cost(text_shown) <= limit:
            return LineExcerpt(text_shown, first_line + first_index, first_line + last_index)
        matches = self._find_matches(lines)
        sizes = (len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines[: last_index + 1])
        ends = [0, *accumulate(sizes)]

        def end_of(start: int) -> int:
            """The last line that still fits after `start`; before it where none does."""
            return bisect_right(ends, ends[start] + 4 * limit + 1, start) - 2

        start = self._find_start(lines, (first_index, last_index), matches, end_of)
        end = end_of(start)
        if end < start:
            # A piece of one long line around its first match.
            line = lines[start]
            match = self._pattern.search(line.lower()) if self._pattern else None
            room = max(1, 4 * limit - 2 * len(CUT.encode()))
            at = match.start() if match else 0
            begin = max(0, at - room // 4)
            if begin:
                begin = line.find(" ", begin, at) + 1 or begin
            piece = first_bytes(line[begin:], room)
            stop = begin + len(piece)
            cut_line = (CUT if begin else "") + piece + (CUT if stop < len(line) else "")
            return LineExcerpt(cut_line, first_line + start, first_line + start)
        while end > start and not lines[end].strip():
            end -= 1
        return LineExcerpt("\n".join(lines[start : end + 1]), first_line + start, first_line + end)

    def held(self, text: str) -> set[str]:
        """The terms that a text holds."""
        if self._pattern is None:
            return set()
        return {self._terms[form] for form in set(self._pattern.findall(text.lower()))}

    def _stop_before_imports(self, lines: list[str], first: int, last: int) -> int:
        """The last line to show: imports and what follows them say little of a file's beginning.

        They stay where a term is for the first time in them, or after them.
        """
        at = next((n for n in range(first, last + 1) if _IMPORT.match(lines[n])), None)
        if at is None or at == first:
            return last
        new_names: dict[str, int] = {}
        for line, term in self._find_matches(lines):
            new_names.setdefault(term, line)
        if not new_names or max(new_names.values()) >= at:
            return last
        return _without_blank_ends(lines[:at])[1]

    def _find_matches(self, lines: list[str]) -> list[tuple[int, str]]:
        """(line, term) of each place where a term stands, in order."""
        if self._pattern is None:
            return []
        folded_lines = [line.lower() for line in lines]
        # A letter can become two when it is lowered: lines are found by what was searched.
        starts = [0, *accumulate(len(line) + 1 for line in folded_lines)]
        matches = []
        for match in self._pattern.finditer("\n".join(folded_lines)):
            line = bisect_right(starts, match.start()) - 1
            matches.append((line, self._terms[match.group()]))
            if len(matches) == _MOST_MATCHES:
                break
        return matches

    def _find_start(
        self,
        lines: list[str],
        span: tuple[int, int],
        matches: list[tuple[int, str]],
        end_of: Callable[[int], int],
    ) -> int:
        """The line from which the lines that fit hold most; the first of several such."""
        first_line, last_line = span
        best_start, best_worth = first_line, 0.0
        # The lines that only bring names in, to the end of their brackets.
        imports: set[int] = set()
        closing = ""
        for number, text in enumerate(lines):
            if closing:
                imports.add(number)
                closing = "" if closing in text else closing
            elif _IMPORT.match(text):
                imports.add(number)
                opened = max(text.rfind("("), text.rfind("{"))
                close = {"(": ")", "{": "}"}.get(text[opened : opened + 1], "")
                closing = close if opened >= 0 and close not in text[opened:] else ""
        matches = [match for match in matches if match[0] not in imports] or matches
        starts = [first_line, *(line for line, _ in matches)]
        # A line before what matched says where one is, if there is one.
        starts += [line - 1 for line, _ in matches if line > first_line and lines[line - 1].strip()]
        for start in sorted({s for s in starts if first_line <= s <= last_line})[:_MOST_STARTS]:
            end = max(start, end_of(start))
            terms: set[str] = set()
            worth = 0.0
            for line, term in matches[bisect_left(matches, (start,)) :]:
                if line > end:
                    break
                worth += self._weights[term] * (_AGAIN if term in terms else 1.0)
                terms.add(term)
            if worth > best_worth:
                best_start, best_worth = start, worth
            if end == last_line:
                break
        return best_start


_IMPORT: Final = re.compile(
    r"(import|from|use|using|require|require_relative|extern crate|#include|package)\b.*"
    r"|(const|let|var) .*\brequire\("
)
"""The first words of a line, at its beginning, that brings in what other files define."""


def _pattern(term: str) -> str:
    """A term in running text. Stems end where their words go on; short ones begin a word."""
    pattern = re.escape(term)
    if term.endswith("i"):
        pattern = f"{pattern[:-1]}[iy]"
    if len(term) >= 4 or not term.isascii():
        return pattern
    if len(term) == 1:
        return rf"(?<![^\W_]){pattern}"
    # A pattern that begins with a letter is tried only where that letter stands.
    first_letter = re.escape(term[0])
    return rf"{first_letter}(?<![^\W_]{first_letter}){pattern[len(first_letter) :]}"


def _without_blank_ends(lines: list[str]) -> tuple[int, int]:
    first_line, last_line = 0, len(lines) - 1
    while first_line < last_line and not lines[first_line].strip():
        first_line += 1
    while last_line > first_line and not lines[last_line].strip():
        last_line -= 1
    return first_line, last_line


_WRITTEN: Final = re.compile(r"[^\s,;:!?()\[\]{}<>\"'`|]+")
_JOINT: Final = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_LONGEST: Final = 60


class FocusWords:
    """The terms of one focus. `weights` has each term's worth."""

    def __init__(self, statements: Iterable[str], weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._written: dict[str, str] = {}
        for match in _WRITTEN.finditer(" ".join(statements)):
            word = match.group().strip(".-/\\*#=_")
            if not word or len(word) > _LONGEST:
                continue
            for piece in (word, *_JOINT.split(word)):
                tokens = analyse(piece)
                # A part is shown as itself, not as the long name that it is a part of.
                if tokens and tokens[0] in weights:
                    self._written.setdefault(tokens[0], piece)

    def within(self, text: str, most: int = 3) -> list[str]:
        """The worthiest words that a short text (a path, a title) holds, as written."""
        return self.shown(set(analyse(text)) & self._weights.keys(), most)

    def worth(self, text: str) -> float:
        """What share of the focus' worth a text holds, 0 to 1."""
        total = sum(self._weights.values())
        terms = set(analyse(text)) & self._weights.keys()
        return sum(self._weights[term] for term in terms) / total if total else 0.0

    def shown(self, terms: Iterable[str], most: int = 3) -> list[str]:
        """The worthiest of these terms, as they were written."""
        order = sorted(terms, key=lambda term: (-self._weights[term], term))
        words: list[str] = []
        for term in order:
            word = self._written.get(term, term)
            # "sessions" says nothing beside "sessions.py".
            if not any(word.lower() in longer.lower() for longer in words):
                words.append(word)
        return words[:most]


def listed(words: Iterable[str]) -> str:
    """Words in back-ticks, with commas between them."""
    return ", ".join(f"`{word}`" for word in words)
