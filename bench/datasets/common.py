"""What the readers share: the values they yield, files, times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from anaphora.values.conversations import ImportedConversation, ImportedTurn

MessageKey = tuple[str, str]
"""A message: its conversation's id, and its key there ("" stands for the whole conversation)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about past conversations, and the messages that answer it: none, and it cannot be
    scored.

    `conversation_id` is None when it is asked of all conversations. `now` is when it is asked
    (aware), None when the data set has no times.
    """

    text: str
    category: str
    conversation_id: str | None
    evidence: frozenset[MessageKey]
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Haystack:
    """Conversations that belong together, and the questions asked of them.

    Haystacks of one `namespace` lie in one memory. `number` is the chat's number in its data set,
    by which a part can be chosen: the number in its file's or folder's name, else its place from 1.
    """

    namespace: str
    number: int
    conversations: tuple[ImportedConversation, ...]
    questions: tuple[Question, ...]


def natural(path: Path) -> tuple[tuple[int, str], ...]:
    """A sort key under which Chat_2 stands before Chat_10."""
    parts = re.split(r"(\d+)", str(path))
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def first_number(name: str, otherwise: int) -> int:
    """The first whole number in a name: 10 in "Chat_10_Ann_Bo"."""
    match = re.search(r"\d+", name)
    return int(match[0]) if match else otherwise


def data_files(path: Path, pattern: str = "*.json") -> list[Path]:
    """The file itself, or those of a folder, in natural order."""
    return sorted(path.glob(pattern), key=natural) if path.is_dir() else [path]


def read_json(path: Path) -> Any:
    """What a file holds."""
    return json.loads(path.read_text("utf-8"))


_TIMES: Final = (
    "%d.%m.%Y, %H:%M:%S",  # REALTALK: 29.12.2023, 22:42:04
    "%I:%M %p on %d %B, %Y",  # LoCoMo: 1:56 pm on 8 May, 2023
    "%B-%d-%Y",  # BEAM: March-15-2024
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval: 2023/05/20 (Sat) 02:21
)


def read_time(text: str | None) -> datetime | None:
    """The instant that a data set's spelling of a time names, in UTC; None for what is no time."""
    for pattern in _TIMES if text else ():
        try:
            return datetime.strptime(text or "", pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def chained(
    turns: Iterable[tuple[str, str, str, datetime | None, str | None]],
) -> tuple[ImportedTurn, ...]:
    """Turns of (key, role, text, time, speaker), each behind the one before; blank ones are left
    out. One without a time gets that of the turn before it, leading ones the first known.

    Otherwise an import would stamp them with the day of the import, years after their neighbours.
    """
    kept: list[ImportedTurn] = []
    for key, role, text, ts, speaker in turns:
        if text.strip():
            parent = kept[-1].key if kept else None
            kept.append(ImportedTurn(key, parent, role, text, ts, speaker))
    return _with_times(kept)


def _with_times(turns: Sequence[ImportedTurn]) -> tuple[ImportedTurn, ...]:
    latest = next((turn.ts for turn in turns if turn.ts is not None), None)
    dated = []
    for turn in turns:
        latest = turn.ts or latest
        dated.append(replace(turn, ts=latest))
    return tuple(dated)
