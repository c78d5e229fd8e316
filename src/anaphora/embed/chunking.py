"""Cuts texts into pages, and long ones into windows that a model can read.

The input is a tokenised text (the text and the character span of each word piece), the output
ranges of word pieces. Every word piece is in at least one range; ranges overlap a little, so that a
sentence at a cut is complete in one of them. This module is independent of any model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

PAGE = "\f"
"""Ends a page (ASCII's form feed): each page of a text has its own vectors, the best counts."""

PIECE: Final = 1 << 14
"""Characters of a text that are embedded at once: some 0.4 s of one core. A longer text is cut into
pieces, so that embedding in the background can stop between two of them."""

# A part may end after this share (1/2) of its window if a paragraph or sentence ends there.
_SLACK = 2
# Neighbouring parts overlap by at most this share (1/8) of the window.
_OVERLAP = 8

_PARAGRAPH, _LINE, _SENTENCE, _WORD = 4, 3, 2, 1
_SENTENCE_ENDS = frozenset(".!?…。！？｡")
_CLOSERS = frozenset("\"')]}»”’」』）")


def pages(text: str) -> list[str]:
    """The pages of `text`, which are embedded separately, without blank ones; at least one."""
    if PAGE not in text:
        return [text]
    return [page for page in text.split(PAGE) if page.strip()] or [text]


def pieces(text: str) -> list[str]:
    """The pages of `text`, each in pieces of at most `PIECE` characters; at least one."""
    return [piece for page in pages(text) for piece in blocks(page, PIECE)]


def blocks(text: str, size: int) -> Iterator[str]:
    """Cut `text` into pieces of at most `size` characters, so that memory stays bounded.

    A piece ends after the last line break, or else the last space, of its second half; a run of
    more than half a piece without either is cut at the limit. Joined, the pieces are `text`.
    """
    start = 0
    while len(text) - start > size:
        half, limit = start + size // 2, start + size
        end = max(text.rfind("\n", half, limit), text.rfind("\r", half, limit))
        if end < 0:
            end = text.rfind(" ", half, limit)
        end = limit if end < 0 else end + 1
        yield text[start:end]
        start = end
    yield text[start:]


_ROUGH_PIECES: Final = (
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]{1,8}|[^\w\s]|_"
)
"""Approximates word pieces if those of the model are not available; rarely more than two each."""

_ROUGH_BLOCK: Final = 1 << 16


def first_pieces(text: str, count: int) -> str:
    """The beginning of `text`: at most `count` rough pieces."""
    end = next(islice(re.finditer(_ROUGH_PIECES, text), count - 1, None), None)
    return text if end is None else text[: end.end()]


def rough_windows(text: str, size: int) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The parts of a text of at most `size` rough pieces: a block, and the spans of its pieces.

    Nothing for a text without any.
    """
    for block in blocks(text, _ROUGH_BLOCK):
        spans = [piece.span() for piece in re.finditer(_ROUGH_PIECES, block)]
        for first_piece, end_piece in windows(block, spans, size):
            if first_piece < end_piece:
                yield block, spans[first_piece:end_piece]


def windows(text: str, spans: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Ranges (first, last + 1) of word pieces, each of at most `size` pieces, covering all.

    `spans` are the (start, end) characters of each word piece of `text`.
    """
    total, start = len(spans), 0
    while total - start > size:
        # The strongest boundary within the last part of the window; the last of equal ones.
        high = start + size
        cut_position, strongest = high, 0
        for at in range(high, start + size // _SLACK, -1):
            strength = _boundary(text, spans, at)
            if strength > strongest:
                cut_position, strongest = at, strength
                if strength == _PARAGRAPH:
                    break
        yield start, cut_position
        start = _restart(text, spans, start, cut_position, size)
    yield start, total


def _restart(text: str, spans: Sequence[tuple[int, int]], start: int, cut: int, size: int) -> int:
    """The start of the next part: the earliest sentence within the overlap, or else a word."""
    reach = max(cut - size // _OVERLAP, start + 1)
    if _boundary(text, spans, cut) >= _LINE:
        return cut
    word = cut
    for at in range(cut - 1, reach - 1, -1):
        strength = _boundary(text, spans, at)
        if strength >= _SENTENCE:
            return at
        if strength == _WORD:
            word = at
    return word


def _boundary(text: str, spans: Sequence[tuple[int, int]], at: int) -> int:
    """How strong the boundary before word piece `at` is; 0 inside a word."""
    gap_start, gap_end = spans[at - 1][1], spans[at][0]
    gap = text[gap_start:gap_end]
    if "\n" in gap or "\r" in gap:
        return _PARAGRAPH if gap.count("\n") > 1 else _LINE
    last_character = text[gap_start - 1] if gap_start else ""
    if last_character in _CLOSERS and gap_start > 1:
        last_character = text[gap_start - 2]
    if last_character in _SENTENCE_ENDS and (gap or not last_character.isascii()):
        return _SENTENCE
    return _WORD if gap else 0
