"""What links two statements: a turn, a memory or a note, and a later one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class StatementLink:
    """What the later of two statements makes of the earlier.

    `older` and `newer` are references: the id of a record, or a turn's `turn_reference`. The
    stamps are those of what was judged (`statement_stamp`): a link of an older text counts for
    nothing. `replaces`, `both` and `repeats` are probabilities; the rest is that of another matter.
    """

    older: str
    newer: str
    older_stamp: str
    newer_stamp: str
    replaces: float
    both: float
    repeats: float


def turn_reference(conversation_id: str, index: int) -> str:
    """How a link names a turn."""
    return f"{conversation_id}#{index}"


def conversation_of(reference: str) -> str:
    """The conversation of a turn that a link names, "" for a record."""
    return reference.rpartition("#")[0]


def is_turn_reference(reference: str) -> bool:
    """Whether a link names a turn, and not a record."""
    return "#" in reference


def statement_stamp(text: str, at: datetime | float, speaker: str) -> str:
    """What tells a statement from what it was before: its words, its time and its speaker.

    `at` is in whole seconds since 1970, or a moment; `speaker` is the name, or "assistant".
    """
    seconds = at if isinstance(at, float) else at.timestamp()
    key = f"{seconds:.0f}\0{speaker}\0{text}"
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
