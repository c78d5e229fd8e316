"""The turns of an index as columns: what ranking knows of a turn besides its words.

In: nothing; the index builds a table and extends it as turns come. Out: one frozen value of NumPy
columns, one row per indexed turn, in the order of indexing. It never holds a turn's text and never
reads a clock or a disk.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# People come back to a chat after hours; within one sitting, turns are minutes apart. Six hours
# tells an evening's chat from the next day's, and does not cut one at a long lunch.
SESSION_GAP_SECONDS = 6 * 3600.0

ROLE_USER = 0
ROLE_ASSISTANT = 1
ROLE_OTHER = 2


@dataclass(frozen=True, slots=True)
class TurnTable:
    """N indexed turns as columns of length N.

    - `conversation` int32: code of the thread, an index into `conversations`.
    - `position` int32: the turn's index in its thread, from 0.
    - `previous`, `following` int32: row of the turn before and after it in its thread, -1 for none.
      They are not always `row ± 1`: threads are indexed as they grow, interleaved.
    - `session` int32: code of the sitting; a new one starts with a thread and wherever the gap to
      the turn before exceeds `SESSION_GAP_SECONDS`. Codes lie in 0…N-1.
    - `role` int8: `ROLE_USER`, `ROLE_ASSISTANT` or `ROLE_OTHER`.
    - `speaker` int16: code of who spoke, an index into `speakers`, -1 where it is not known.
    - `ts` float64: seconds since the epoch, NaN where it is not known.
    - `length` int32: number of analysed tokens.
    - `flags` int32: what `features.turn_flags` saw in the text.
    """

    conversation: NDArray[np.int32]
    position: NDArray[np.int32]
    previous: NDArray[np.int32]
    following: NDArray[np.int32]
    session: NDArray[np.int32]
    role: NDArray[np.int8]
    speaker: NDArray[np.int16]
    ts: NDArray[np.float64]
    length: NDArray[np.int32]
    flags: NDArray[np.int32]
    conversations: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.conversation)


PERSONAL = 1  # the speaker says something of themselves: what questions about people ask for
STANDING = 2  # an instruction for later ("always …", "from now on …", "… when I ask about …")

# Pasted logs and files are judged by what surrounds them, where people write their own words.
_HEAD = 4000
_TAIL = 1000
# Who gives a standing instruction opens with it; further down, "always" is somebody's document.
_OPENING = 400

_PERSONAL = re.compile(r"\b(?:I|my|My|we|We|our|Our|mine|I['’](?:m|ve|d|ll))\b")
_STANDING = re.compile(
    r"(?:^|[.!?\n])\s*(?:please\s+)?(?:always|never|from now on|going forward)\b"
    r"|\bwhen(?:ever)? I ask\b",
    re.IGNORECASE,
)


def turn_flags(text: str) -> int:
    """The flags of `text`, or-ed together.

    English words are known; a text in another language has no flags, which costs it nothing
    against others of that language. Takes a few microseconds for a usual turn.
    """
    shown = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"
    flags = PERSONAL if _PERSONAL.search(shown) else 0
    if _STANDING.search(text, 0, _OPENING):
        flags |= STANDING
    return flags
