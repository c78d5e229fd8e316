"""What every lane does with a question first: check it, truncate it, embed it.

A question that is longer than helps is truncated to its beginning and its end: every lane reads
only this of it, and the work does not grow with what is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from anaphora.errors import EmbeddingError, InvalidInput
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.embed.base import Vector
    from anaphora.embed.service import EmbedderService

BLANK: Final = Degraded("query", "the query is blank")

MODEL_PATIENCE: Final = 10.0
"""Seconds that a question waits for a model that is still loading before words answer alone.
Loading takes under a second; a machine that needs longer is better served by words now."""

MOST_BYTES: Final = 4_096
"""Bytes of UTF-8 that are read of a question: some four windows of the bundled model, at most 16.

What helps is short. Of 14 questions each to a chat of REALTALK and of BEAM, asked after 30,000
characters of another chat, so much of the evidence is among the first ten turns: 0.19 and 0.30
where 1,000 characters are read, 0.16 and 0.07 where 4,000 are, 0.18 and 0.00 where 16,000 are;
asked alone 0.56 and 0.76. Only bug reports say more the longer they are: the longest of the test
sets has 3,951 bytes."""

_BREAK = "\n"


def check_count(name: str, value: int, least: int) -> None:
    """Raise `InvalidInput` for what is less than `least`."""
    if value < least:
        raise InvalidInput(name, value, f"expected a whole number, {least} or more")


def check_share(name: str, value: float) -> None:
    """Raise `InvalidInput` for what is no number from 0 to 1."""
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(name, value, "expected a number from 0 to 1")


def query_vector(embedder: EmbedderService, text: str, degraded: list[Degraded]) -> Vector | None:
    """The vector of a question; None where it cannot be had, and `degraded` gets the reason."""
    try:
        return embedder.query(text, timeout=MODEL_PATIENCE)
    except EmbeddingError as error:
        degraded.append(Degraded("embeddings", f"only words were searched: {error}"))
        return None


def truncated_question(text: str, most: int = MOST_BYTES) -> tuple[str, tuple[Degraded, ...]]:
    """What is read of one question: all of it, or its first and its last half of `most` bytes.

    People paste a long text and ask before or after it. Cut between words where there are any.
    """
    # A character takes a byte at least: what is far longer need not be encoded to be known so.
    if len(text) <= most and len(text.encode("utf-8", "surrogatepass")) <= most:
        return text, ()
    half = (most - len(_BREAK)) // 2
    head = _whole_words(first_bytes(text, half), text)
    tail = _whole_words(first_bytes(text[: -half - 1 : -1], half), text[::-1])[::-1]
    reason = (
        f"only the first {len(head):,} and the last {len(tail):,} of its {len(text):,} characters "
        "are read"
    )
    return head + _BREAK + tail, (Degraded("query", reason),)


def truncated_questions(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Degraded, ...]]:
    """What is read of several questions that are asked at once: they share `MOST_BYTES`."""
    read: list[str] = []
    degraded: dict[Degraded, None] = {}
    left = MOST_BYTES
    for number, text in enumerate(texts):
        # What a short one leaves is for those that follow.
        kept, told = truncated_question(text, max(1, left // (len(texts) - number)))
        left -= len(kept.encode("utf-8", "surrogatepass"))
        read.append(kept)
        degraded.update(dict.fromkeys(told))
    return tuple(read), tuple(degraded)


def first_bytes(text: str, most: int) -> str:
    """The first characters of `text` that take no more bytes than `most`."""
    some = text[:most].encode("utf-8", "surrogatepass")
    if len(some) <= most:
        return text[:most]
    # Half a character at the end goes; lone surrogates are whole characters here.
    while most and (some[most] & 0xC0) == 0x80:
        most -= 1
    return some[:most].decode("utf-8", "surrogatepass")


def _whole_words(part: str, text: str) -> str:
    """The part without a word that the cut has torn, unless that is much of it."""
    if len(part) >= len(text) or text[len(part)].isspace():
        return part
    at = max(part.rfind(" "), part.rfind("\n"))
    return part[:at] if at > len(part) * 7 // 8 else part
