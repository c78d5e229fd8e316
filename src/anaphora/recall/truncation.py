"""How much of a question is read: its two ends, where it is longer than helps.

In: a text somebody asks with, of any length. Out: what is read of it, and a word for `degraded`
where that is not all. Every lane reads this and nothing else of a question: words, names, times and
the embedder. Pure, and its work does not grow with what is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anaphora.values.conversations import Degraded

MOST_BYTES: Final = 4_096
"""Bytes of UTF-8 that are read of a question: some four windows of the bundled model, at most 16.

What helps is short. Of 14 questions each to a chat of REALTALK and of BEAM, asked after 30,000
characters of another chat, so much of the evidence is among the first ten turns: 0.19 and 0.30
where 1,000 characters are read, 0.16 and 0.07 where 4,000 are, 0.18 and 0.00 where 16,000 are;
asked alone 0.56 and 0.76. Only bug reports say more the longer they are: the longest of the test
sets has 3,951 bytes."""

_BREAK = "\n"


def read_of(text: str, most: int = MOST_BYTES) -> tuple[str, tuple[Degraded, ...]]:
    """What is read of one question: all of it, or its first and its last half of `most` bytes.

    People paste a long text and ask before or after it. Cut between words where there are any.
    """
    # A character takes a byte at least: what is far longer need not be encoded to be known so.
    if len(text) <= most and len(text.encode("utf-8", "surrogatepass")) <= most:
        return text, ()
    half = (most - len(_BREAK)) // 2
    head = _whole_words(_first(text, half), text)
    tail = _whole_words(_first(text[: -half - 1 : -1], half), text[::-1])[::-1]
    reason = (
        f"it has {len(text):,} characters: its first {len(head):,} and its last {len(tail):,} are "
        "read, the rest is not"
    )
    return head + _BREAK + tail, (Degraded("query", reason),)


def read_of_all(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Degraded, ...]]:
    """What is read of several questions that are asked at once: they share `MOST_BYTES`."""
    read: list[str] = []
    degraded: dict[Degraded, None] = {}
    left = MOST_BYTES
    for number, text in enumerate(texts):
        # What a short one leaves is for those that follow.
        kept, told = read_of(text, max(1, left // (len(texts) - number)))
        left -= len(kept.encode("utf-8", "surrogatepass"))
        read.append(kept)
        degraded.update(dict.fromkeys(told))
    return tuple(read), tuple(degraded)


def _first(text: str, most: int) -> str:
    """The first characters of `text` that take no more bytes than `most`."""
    some = text[:most].encode("utf-8", "surrogatepass")
    if len(some) <= most:
        return text[:most]
    kept = some[:most]
    # Half a character at the end goes; lone surrogates are whole characters here.
    while kept and (some[len(kept)] & 0xC0) == 0x80:
        kept = kept[:-1]
    return kept.decode("utf-8", "surrogatepass")


def _whole_words(part: str, text: str) -> str:
    """The part without a word that the cut has torn, unless that is much of it."""
    if len(part) >= len(text) or text[len(part)].isspace():
        return part
    at = max(part.rfind(" "), part.rfind("\n"))
    return part[:at] if at > len(part) * 7 // 8 else part
