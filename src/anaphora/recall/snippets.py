"""The part of a text that is most about a question, and where in it words match.

A snippet is one line to look at; a passage is what stands for a text that is too long to come
whole. Both are verbatim parts of the text, found where most different words of the question are.
Time is linear in the length of the text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from anaphora.language.analyser import analyse

SNIPPET: Final = 240
"""Characters of a snippet."""

_WORD: Final = re.compile(r"\S+")
_SPACE: Final = re.compile(r"\s")
_DIGITS: Final = re.compile(r"(\d)(?=\d)")
_EDGES: Final = "\"'`()[]{}<>.,;:!?*_…"
_STARTS: Final = re.compile(r"(?:^|(?<=[.!?])\s+|\n)\s*(?=\S)")
_BACK: Final = 60
_MEANING: Final = 1.0


class TermMatch(NamedTuple):
    """A word of a text that holds terms of a question."""

    start: int
    end: int
    terms: frozenset[str]


def snippet(
    text: str, terms: Sequence[str], most: int = SNIPPET
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """At most `most` characters of `text` in one line, with the most different `terms`.

    And where in it words match. A text that is short enough comes whole; "…" stands for the rest.
    """
    flat = " ".join(text.split())
    matches = _find_matches(flat, frozenset(terms))
    if len(flat) <= most:
        start, end = 0, len(flat)
    else:
        start = _find_densest(matches, most - _BACK)
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
            cut_index = flat.rfind(" ", start + most // 2, end)
            end = cut_index if cut_index > 0 else end
    start_mark = "…" if start else ""
    end_mark = "…" if end < len(flat) else ""
    shift = len(start_mark) - start
    spans = tuple((a + shift, b + shift) for a, b, _ in matches if start <= a and b <= end)
    return f"{start_mark}{flat[start:end]}{end_mark}", spans


def passage(
    text: str,
    terms: Sequence[str],
    most: int,
    *,
    weights: Mapping[str, float] | None = None,
    near: Sequence[float] = (),
) -> tuple[int, int]:
    """Where the best part of at most `most` bytes (UTF-8) of a long `text` begins and ends.

    `weights` is what each term counts, 1 by default. `near` are the cosines of the question with
    the text's chunks, in their order: where the words of the question do not stand, its meaning
    tells. Begins and ends between lines or sentences where there are some near.
    """
    matches = _find_matches(text, frozenset(terms))
    # A character has one to four bytes: the part is measured in characters of the usual size.
    size = max(1, most * len(text) // max(1, len(text.encode("utf-8", "surrogatepass"))))
    begin = _find_start(text, matches, size, weights or {}, near)
    start = _find_sentence(text, begin, size)
    end = min(len(text), start + size)
    while end > start and len(text[start:end].encode("utf-8", "surrogatepass")) > most:
        end -= max(1, (len(text[start:end].encode("utf-8", "surrogatepass")) - most) // 4)
    if end < len(text):
        # An end of a line, sentence or word at `end` or a little before it.
        low = end - (end - start) // 6
        marks = ("\n", ". ", "! ", "? ", " ")
        cuts = ((text.rfind(mark, low, end), len(mark.rstrip())) for mark in marks)
        end = next((cut_start + length for cut_start, length in cuts if cut_start > start), end)
    return start, end


def best_part(text: str, terms: Sequence[str], most: int) -> str:
    """The text, or the `passage` of a longer one, of at most `most` bytes."""
    if len(text) <= most:
        return text
    start, end = passage(text, terms, most)
    return text[start:end]


def _find_matches(text: str, asked_terms: frozenset[str]) -> list[TermMatch]:
    """The words that hold wanted terms, in order."""
    matches = []
    for start, end in _find_likely(text, asked_terms) if asked_terms else ():
        word = text[start:end]
        if terms := _analyse_word(word) & asked_terms:
            inner_word = word.strip(_EDGES)
            first_index = start + word.find(inner_word) if inner_word else start
            matches.append(TermMatch(first_index, first_index + len(inner_word or word), terms))
    return matches


def _find_likely(text: str, asked_terms: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Where the words stand that may hold a wanted term: to analyse them all takes too long."""
    needles = _compile_needles(asked_terms)
    if not text.isascii():
        for word in _WORD.finditer(text):
            if not word[0].isascii() or needles.search(word[0]):
                yield word.span()
        return
    end = 0
    for hit in needles.finditer(text):
        if hit.start() < end:
            continue
        start = hit.start()
        while start > end and not text[start - 1].isspace():
            start -= 1
        space = _SPACE.search(text, hit.end())
        end = space.start() if space else len(text)
        yield start, end


@lru_cache(maxsize=256)
def _compile_needles(asked_terms: frozenset[str]) -> re.Pattern[str]:
    """Matches somewhere in every word of ASCII that holds one of the terms.

    A stem begins like its word, but for its last letter ("happi"); the digits of a number may be
    parted by commas in the text.
    """
    heads = {term[:-1] if len(term) > 2 and term.isalpha() else term for term in asked_terms}
    parts = (_DIGITS.sub(r"\1,?", re.escape(head)) for head in sorted(heads))
    return re.compile("|".join(parts), re.IGNORECASE)


@lru_cache(maxsize=65_536)
def _analyse_word(word: str) -> frozenset[str]:
    return frozenset(analyse(word))


def _find_densest(matches: Sequence[TermMatch], size: int) -> int:
    """Where a window of `size` characters begins that holds the most different terms.

    The first of equals; 0 if nothing matched.
    """
    counts: Counter[str] = Counter()
    best_count = start = last_index = 0
    for first_index, match in enumerate(matches):
        if first_index:
            for term in matches[first_index - 1].terms:
                counts[term] -= 1
        # A word counts where it begins, even if it is longer than the window.
        while last_index < len(matches) and (
            last_index <= first_index or matches[last_index].end <= match.start + size
        ):
            for term in matches[last_index].terms:
                counts[term] += 1
            last_index += 1
        distinct_count = sum(count > 0 for count in counts.values())
        if distinct_count > best_count:
            best_count, start = distinct_count, match.start
    return start


def _find_start(
    text: str,
    matches: Sequence[TermMatch],
    size: int,
    weights: Mapping[str, float],
    near: Sequence[float],
) -> int:
    """Where the best window of `size` characters begins: words by their weights, and meaning."""
    counts = Counter(term for match in matches for term in match.terms)
    # A term that the whole text is about tells its parts not apart.
    term_weights = {
        term: weights.get(term, 1.0) / (1.0 + math.log(n)) for term, n in counts.items()
    }
    all_words = sum(weights.get(term, 1.0) for term in counts) or 1.0
    spread = (max(near) - min(near)) if near else 0.0
    starts = [match.start for match in matches]
    # So much of a window is sure to be shown, once it begins and ends with a sentence.
    reach = 2 * size // 3
    # A window may begin a little before a match, or around a chunk: this bounds their number.
    begins: list[int] = []
    last_start = -(step := max(1, size // 4))
    for start in starts:
        if start >= last_start + step:
            last_start = start
            begins.append(max(0, start - size // 6))
    middles = ((2 * chunk + 1) * len(text) // (2 * len(near)) for chunk in range(len(near)))
    begins += (max(0, middle - size // 2) for middle in middles)
    best_score, best_start = -1.0, 0
    for begin in (*begins, 0):
        low, high = bisect_left(starts, begin), bisect_left(starts, begin + reach)
        terms = {term for match in matches[low:high] for term in match.terms}
        score = sum(term_weights[term] for term in terms) / all_words
        if spread > 0.0:
            middle = min(len(near) - 1, (begin + size // 2) * len(near) // max(1, len(text)))
            score += _MEANING * (near[middle] - min(near))
        if score > best_score + 1e-9:
            best_score, best_start = score, begin
    return best_start


def _find_sentence(text: str, begin: int, size: int) -> int:
    """The nearest beginning of a line or sentence at `begin` or a little before it, else a word."""
    last_start = max(0, len(text) - size)
    if begin >= last_start:
        # Up to the end of the text there is no room before it.
        space = text.find(" ", last_start, last_start + size // 8) if last_start else -1
        return space + 1 if space >= 0 else last_start
    low = max(0, begin - size // 8)
    if low == 0:
        return 0
    line = text.rfind("\n", low, begin + 1)
    if line >= 0:
        return line + 1
    starts = [match.end() for match in _STARTS.finditer(text, low, begin + 1)]
    if starts:
        return starts[-1]
    space = text.rfind(" ", low, begin + 1)
    return space + 1 if space >= 0 else begin
