"""What ranking knows of turns besides their words: columns, and the flags of a text.

The index builds a table and extends it as turns come, one row per turn in the order of indexing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from anaphora.language.folding import typed_text
from anaphora.language.languages.language import ENGLISH, language_of, languages

# People come back to a chat after hours; within one sitting, turns are minutes apart. Six hours
# tells an evening's chat from the next day's, and does not cut one at a long lunch.
SESSION_GAP_SECONDS = 6 * 3600.0

ROLE_USER = 0
ROLE_ASSISTANT = 1
ROLE_OTHER = 2


@dataclass(frozen=True)
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
    - `offset` int16: minutes east of UTC at which it was said, 0 where that is not known.
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
    offset: NDArray[np.int16] | None = None

    def __len__(self) -> int:
        return len(self.conversation)

    @cached_property
    def beside(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows of the turns before and after each one in its sitting, N for none."""
        columns = []
        for column in (self.previous, self.following):
            goes_on = (column >= 0) & (self.session[column] == self.session)
            columns.append(np.where(goes_on, column, np.int32(len(self))))
        return columns[0], columns[1]


PERSONAL = 1  # the speaker says something of themselves: what questions about people ask for
STANDING = 2  # an instruction for later ("always …", "from now on …", "… when I ask about …")

# Pasted logs and files are judged by what surrounds them, where people write their own words.
_HEAD = 4000
_TAIL = 1000
# A standing instruction opens with it; further down, "always" is part of some document.
_OPENING = 400


def turn_flags(text: str) -> int:
    """The flags of `text`, or-ed together, by the words of its language.

    Takes some ten microseconds for a usual turn.
    """
    code = language_of(text)
    personal, instruction = _compile_patterns(code)
    excerpt = text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"
    flags = PERSONAL if personal.search(excerpt) else 0
    if instruction.search(typed_text(text[: 2 * _OPENING]), 0, _OPENING):
        flags |= STANDING
    return flags


@lru_cache(maxsize=64)
def _compile_patterns(code: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of personal statements and of standing instructions; "" is read as English."""
    cues = languages()[code or ENGLISH].cues
    is_spaced = languages()[code or ENGLISH].spaced
    personal = "|".join(cues.get("personal_of_turns") or cues.get("personal", ()))
    instruction, asking = (
        "|".join(cues.get("standing", ())),
        "|".join(cues.get("standing_asks", ())),
    )
    bound = r"\b" if is_spaced else ""
    opening = rf"(?:^|[.!?。！？\n])\s*(?:{instruction or '(?!)'}){bound}"
    return (
        re.compile(rf"{bound}(?:{personal or '(?!)'}){bound}"),
        re.compile(rf"{opening}|{bound}(?:{asking or '(?!)'}){bound}", re.IGNORECASE),
    )


def speakers_present(table: TurnTable, rows: NDArray[np.intp] | None = None) -> dict[int, str]:
    """The codes and names of the speakers of `rows` (of all rows when None), by code."""
    codes = table.speaker if rows is None else table.speaker[rows]
    speaking = codes[codes >= 0]
    return {int(code): table.speakers[code] for code in np.flatnonzero(np.bincount(speaking))}
