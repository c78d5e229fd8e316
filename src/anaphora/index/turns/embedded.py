"""The text of a turn that is embedded: prose in full, pasted blocks only at their beginning.

Code, traces and logs make up most of a coding agent's turns, and queries about them are answered
by their words rather than by their meaning. Decision 0022 has figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from anaphora.text.recalled import strip_recalled

PASTED_PIECES: Final = 64
"""Word pieces, approximately, of a pasted block that are embedded."""

_PORTIONS: Final = 64
_FENCED: Final = 2
# Items of lists, tables and quotations are prose, however far they are indented.
_PROSE: Final = re.compile(r"\s*(?:[-*+•|>]\s|\d{1,3}[.)]\s)")


def embedded_text(text: str) -> str:
    """The text of a turn that is embedded, without recalled text that it quotes."""
    own_text = strip_recalled(text)
    return "\n".join(own_text[start:end] for start, end in embedded_spans(own_text))


@lru_cache(maxsize=64)
def embedded_spans(text: str) -> Sequence[tuple[int, int]]:
    """The spans of a text that are embedded, separated at line ends.

    Those of a long text are asked for by every question that it is a candidate for.
    """
    from anaphora.embed.chunking import first_pieces
    from anaphora.text.pasted import blocks

    spans: list[tuple[int, int]] = []
    begin = at = 0
    block = -1
    for line, mark in (*(blocks(text) if len(text) > PASTED_PIECES else ()), ("", 0)):
        is_pasted = mark == _FENCED or (mark > 0 and not _PROSE.match(line))
        if is_pasted and block < 0:
            block = at
        elif not is_pasted and block >= 0:
            cut_position = block + len(first_pieces(text[block : at - 1], PASTED_PIECES))
            if cut_position < at - 1:
                spans.append((begin, cut_position))
                begin = at
            block = -1
        at += len(line) + 1
    if begin < len(text):
        spans.append((begin, len(text)))
    return spans


def over_whole(near: Sequence[float], text: str) -> Sequence[float]:
    """The cosines of a turn's chunks, in the order of its text, as those of equal portions of it.

    A portion without a chunk has the cosine of the chunk before it.
    """
    spans = embedded_spans(text)
    length = sum(end - start for start, end in spans)
    if len(near) < 2 or length == len(text):
        return near
    spread: list[float] = []
    for portion in range(_PORTIONS):
        middle = (2 * portion + 1) * len(text) // (2 * _PORTIONS)
        length_before = sum(min(end, middle) - start for start, end in spans if start < middle)
        spread.append(near[min(len(near) - 1, length_before * len(near) // max(1, length))])
    return spread
