"""What the readers share: the values they yield, JSON taken apart, times, safe names.

In: paths, JSON text, the date spellings of the data sets. Out: frozen values. It reads files and
nothing else; it never raises for a file's content, which comes back as `ImportProblem`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from anaphora.ingest.bounds import Bounds
from anaphora.ingest.importers.base import ImportFile
from anaphora.ingest.importers.finding import UNREADABLE, reason_of
from anaphora.ingest.importers.json_reader import Record, records
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem

MessageKey = tuple[str, str]
"""A message: its conversation's id, and its key there ("" stands for the whole conversation)."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about past conversations, and the messages that answer it.

    `conversation_id` is None when it is asked of all conversations. `now` is when it is asked
    (aware), None when the data set has no times. `left_out` says why it cannot be scored, "" if it
    can; `unresolved` counts pieces of evidence that name no message of the data.
    """

    text: str
    category: str
    conversation_id: str | None
    evidence: frozenset[MessageKey]
    now: datetime | None = None
    left_out: str = ""
    unresolved: int = 0


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


class UniqueNames:
    """Gives a name out once; the next that asks for it gets it with -2, -3, … at its end."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def take(self, name: str) -> str:
        """The name itself, or the first numbered form of it that is free."""
        chosen, count = name, 1
        while chosen in self._given:
            count += 1
            chosen = f"{name}-{count}"
        self._given.add(chosen)
        return chosen


def safe_id(text: str) -> str:
    """A conversation id out of any name: separators and control characters become "-"."""
    kept = "".join(
        "-" if c in "/\\" or unicodedata.category(c) in {"Cc", "Cs"} else c for c in text.lower()
    )
    return kept.strip().strip(".")[:200] or "unnamed"


def natural(path: Path) -> tuple[tuple[int, str], ...]:
    """A sort key under which Chat_2 stands before Chat_10."""
    parts = re.split(r"(\d+)", str(path))
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def first_number(name: str) -> int | None:
    """The first whole number in a name: 10 in "Chat_10_Ann_Bo"."""
    found = re.search(r"\d{1,9}", name)
    return int(found[0]) if found else None


def data_files(path: Path) -> list[Path]:
    """The file itself, or a directory's .json and .jsonl files (those of its folders if it has
    none), in natural order."""
    if not path.is_dir():
        return [path]
    for pattern in ("*", "**/*"):
        found = [p for p in path.glob(pattern) if p.suffix in {".json", ".jsonl"} and p.is_file()]
        if found:
            return sorted(found, key=natural)
    return []


def json_values(path: Path, bounds: Bounds) -> Iterator[object | ImportProblem]:
    """The members of a JSON array, one by one; or JSON lines; or the one value of the file.

    One by one, because LongMemEval's files are hundreds of megabytes.
    """
    try:
        file = ImportFile(path, bounds=bounds)
        for record in records(file):
            yield record.value if isinstance(record, Record) else record
    except UNREADABLE as error:
        yield ImportProblem(str(path), "file", reason_of(error))


_TIMES = (
    "%d.%m.%Y, %H:%M:%S",  # REALTALK: 29.12.2023, 22:42:04
    "%d.%m.%Y, %H:%M",
    "%I:%M %p on %d %B, %Y",  # LoCoMo: 1:56 pm on 8 May, 2023
    "%I:%M %p on %B %d, %Y",
    "%B-%d-%Y",  # BEAM: March-15-2024
    "%b-%d-%Y",
    "%B %d, %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%Y/%m/%d %H:%M",  # LongMemEval: 2023/05/20 (Sat) 02:21
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d",
)


def read_time(value: object) -> datetime | None:
    """The instant that a data set's spelling of a time names, in UTC unless it says otherwise.

    None for what is no time.
    """
    if not isinstance(value, str):
        return None
    # The weekday in brackets says nothing that the date does not.
    text = re.sub(r"\s+", " ", re.sub(r"\(\w+\)", " ", value)).strip()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    for pattern in _TIMES:
        try:
            return datetime.strptime(text, pattern).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def fill_times(turns: Sequence[ImportedTurn]) -> tuple[ImportedTurn, ...]:
    """The turns; one without a time gets that of the turn before it, leading ones the first known.

    Otherwise an import would stamp them with the day of the import, years after their neighbours.
    """
    known = next((turn.ts for turn in turns if turn.ts is not None), None)
    filled: list[ImportedTurn] = []
    for turn in turns:
        known = turn.ts or known
        filled.append(turn if turn.ts == known else replace(turn, ts=known))
    return tuple(filled)


def text_of(message: Mapping[str, object], *fields: str) -> str:
    """The first of the fields that holds text, "" if none does."""
    for name in fields:
        value = message.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""
