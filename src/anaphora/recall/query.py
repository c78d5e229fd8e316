"""What every lane does with a question first: check it, read what asks in it, embed it.

Of a question with a text pasted into it every lane reads only the words that ask and the lines that
identify what was pasted (`text.pasted`), and the work does not grow with what is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from anaphora.calls.limits import check_cancelled
from anaphora.errors import EmbeddingError, InvalidInput, TimedOut
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.embed.base import Vector
    from anaphora.embed.service import EmbedderService

BLANK: Final = Degraded("query", "it is empty, so nothing was looked for")

MODEL_PATIENCE: Final = 10.0
"""Seconds that a question waits for a model that is still loading before words answer alone.
Loading takes under a second; a machine that needs longer is better served by words now."""

MOST_BYTES: Final = 4_096
"""Bytes of UTF-8 that are read of a question in its asker's own words: some four windows of the
bundled model, at most 16. The longest bug report of the test sets has 3,951 bytes."""

BRIEF: Final = 600
"""Characters up to which a question is read whole, whatever it holds: what is pasted in so little
is what is asked about."""

_BREAK = "\n"


def is_empty(question: str) -> bool:
    """Whether nothing is asked: no letter, digit or picture, only blanks and marks."""
    return not any(c.isalnum() or unicodedata.category(c) == "So" for c in question)


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
    check_cancelled()
    try:
        return embedder.query(text, timeout=MODEL_PATIENCE)
    except (EmbeddingError, TimedOut) as error:
        is_loading = not embedder.ready(0) and embedder.failure is None
        reason = "meaning is still loading, " if is_loading else ""
        degraded.append(Degraded("embeddings", f"{reason}only words were searched: {error}"))
        return None


def typed_question(text: str) -> str:
    """A question of one line, composed (NFC) and with single spaces: its form changes no answer."""
    if len(text) > BRIEF or len(text.strip().splitlines()) > 1:
        return text
    return " ".join(unicodedata.normalize("NFC", text).split())


def truncated_question(text: str, most: int = MOST_BYTES) -> tuple[str, tuple[Degraded, ...]]:
    """What is read of one question, at most `most` bytes, and that it is not all of it.

    All of it, unless it is longer or a text is pasted into it. Then the words that ask, before or
    after what is pasted, and the lines that identify that; where neither can be told, its ends.
    """
    fits = _fits(text, most)
    if fits and len(text) <= BRIEF:
        return text, ()
    from anaphora.text.pasted import ASKING, has_pasted, tell_apart

    if fits and not has_pasted(text):
        return text, ()
    # In a text that could be read whole, the words around a block are the asker's own.
    apart = tell_apart(text, most if fits else ASKING)
    read = first_bytes(apart.text, most)
    if not read.strip():
        if fits:
            return text, ()
        # Its first and its last half, cut between words if there are any.
        half = (min(most, ASKING) - len(_BREAK)) // 2
        head = _trim_torn_word(first_bytes(text, half), text)
        # Only what is looked at is turned round.
        reversed_tail = text[: -half - 2 : -1]
        tail = _trim_torn_word(first_bytes(reversed_tail[:half], half), reversed_tail)[::-1]
        reason = (
            f"only the first {len(head):,} and the last {len(tail):,} of its {len(text):,} "
            "characters are read"
        )
        return head + _BREAK + tail, (Degraded("query", reason),)
    if len(read) >= len(text):
        return text, ()
    words = "the words that ask" if apart.asks else "its two ends"
    reason = (
        f"only {len(read):,} of its {len(text):,} characters are read: {words}, and the lines that "
        "identify what is pasted"
    )
    return read, (Degraded("query", reason),)


def truncated_questions(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Degraded, ...]]:
    """What is read of several statements of a focus at once: they share `MOST_BYTES`.

    A focus is looked up in files, where what is pasted has its place too: one that fits is whole.
    """
    read: list[str] = []
    degradations: dict[Degraded, None] = {}
    remaining = MOST_BYTES
    for number, text in enumerate(texts):
        # What a short one leaves is for those that follow.
        max_length = max(1, remaining // (len(texts) - number))
        part, reasons = (
            (text, ()) if _fits(text, max_length) else truncated_question(text, max_length)
        )
        remaining -= len(part.encode("utf-8", "surrogatepass"))
        read.append(part)
        degradations.update(dict.fromkeys(reasons))
    return tuple(read), tuple(degradations)


def _fits(text: str, most: int) -> bool:
    # A character takes a byte at least: what is far longer need not be encoded to be known so.
    return len(text) <= most and len(text.encode("utf-8", "surrogatepass")) <= most


def first_bytes(text: str, most: int) -> str:
    """The first characters of `text` that take no more bytes than `most`."""
    encoded_text = text[:most].encode("utf-8", "surrogatepass")
    if len(encoded_text) <= most:
        return text[:most]
    # Half a character at the end goes; lone surrogates are whole characters here.
    while most and (encoded_text[most] & 0xC0) == 0x80:
        most -= 1
    return encoded_text[:most].decode("utf-8", "surrogatepass")


def _trim_torn_word(part: str, text: str) -> str:
    """The part without a word that the cut has torn, unless that is much of it."""
    if len(part) >= len(text) or text[len(part)].isspace():
        return part
    at = max(part.rfind(" "), part.rfind("\n"))
    return part[:at] if at > len(part) * 7 // 8 else part
