"""What of a turn becomes its vectors: what people write whole, of what is pasted how it begins.

Code, traces and logs take most of the word pieces of a coding agent's turns, and little of what is
asked about them is told by their meaning: they are found by their words. Decision 0044 has figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from anaphora.core.pasted import blocks
from anaphora.core.recalled import strip_recalled
from anaphora.embed.chunking import first_pieces

PASTED_PIECES: Final = 64
"""Word pieces, about, of a pasted block that become vectors."""

_PORTIONS: Final = 64
_FENCED: Final = 2
# Items of lists, tables and quotations are somebody's words, however far in they stand.
_PROSE: Final = re.compile(r"\s*(?:[-*+•|>]\s|\d{1,3}[.)]\s)")


def embedded_text(text: str) -> str:
    """What of a turn becomes its vectors, without what it quotes of a recall."""
    own_text = strip_recalled(text)
    return "\n".join(own_text[start:end] for start, end in embedded_spans(own_text))


def embedded_spans(text: str) -> list[tuple[int, int]]:
    """Where what becomes vectors stands in a text; a line ends between two of them."""
    spans: list[tuple[int, int]] = []
    begin = at = 0
    block = -1
    for line, mark in (*(blocks(text) if len(text) > PASTED_PIECES else ()), ("", 0)):
        pasted = mark == _FENCED or (mark > 0 and not _PROSE.match(line))
        if pasted and block < 0:
            block = at
        elif not pasted and block >= 0:
            cut = block + len(first_pieces(text[block : at - 1], PASTED_PIECES))
            if cut < at - 1:
                spans.append((begin, cut))
                begin = at
            block = -1
        at += len(line) + 1
    if begin < len(text):
        spans.append((begin, len(text)))
    return spans


def over_whole(near: Sequence[float], text: str) -> Sequence[float]:
    """The cosines of a turn's chunks, in the order of its text, laid over equal portions of it.

    A portion that no chunk covers has the cosine of the chunk before it.
    """
    spans = embedded_spans(text)
    length = sum(end - start for start, end in spans)
    if len(near) < 2 or length == len(text):
        return near
    spread: list[float] = []
    for portion in range(_PORTIONS):
        middle = (2 * portion + 1) * len(text) // (2 * _PORTIONS)
        before = sum(min(end, middle) - start for start, end in spans if start < middle)
        spread.append(near[min(len(near) - 1, before * len(near) // max(1, length))])
    return spread
