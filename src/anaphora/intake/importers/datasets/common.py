"""What the four readers share: the values they yield, JSON taken apart, times, safe names.

In: paths, JSON text, the date spellings of the data sets. Out: frozen values. It reads files and
nothing else; it never raises for a file's content, which comes back as `ImportProblem`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from anaphora.store.nesting import is_too_deep
from anaphora.values import ImportedConversation, ImportedTurn, ImportProblem

__all__ = [
    "Haystack",
    "MessageKey",
    "Question",
    "UniqueNames",
    "data_files",
    "fill_times",
    "first_number",
    "json_values",
    "natural",
    "read_time",
    "safe_id",
    "text_of",
]

_DECODER = json.JSONDecoder()

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
    if path.is_file():
        return [path]
    for pattern in ("*", "**/*"):
        found = [p for p in path.glob(pattern) if p.suffix in {".json", ".jsonl"} and p.is_file()]
        if found:
            return sorted(found, key=natural)
    return []


def json_values(path: Path) -> Iterator[object | ImportProblem]:
    """The members of a JSON array, one by one; or JSON lines; or the one value of the file.

    One by one, because LongMemEval's files are hundreds of megabytes.
    """
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        yield ImportProblem(str(path), "file", str(error))
        return
    if text.startswith("["):
        yield from _members(path, text)
        return
    try:
        value, end = _decoded(text, 0)
    except (ValueError, RecursionError) as error:
        if _spans_lines(error) or "\n" not in text:
            yield ImportProblem(str(path), "file", f"no JSON: {error}")
            return
        end = -1
    if end == len(text):
        yield value
    else:
        yield from _lines(path, text)


def _spans_lines(error: Exception) -> bool:
    return isinstance(error, json.JSONDecodeError) and error.lineno > 1


def _decoded(text: str, place: int) -> tuple[object, int]:
    """The value there, and where it ends. ValueError, RecursionError."""
    value, end = _DECODER.raw_decode(text, place)
    if is_too_deep(value, text, place, end):
        raise ValueError("nested too deeply")
    return value, end


def _members(path: Path, text: str) -> Iterator[object | ImportProblem]:
    place, count = _skip(text, 1), 0
    while place < len(text) and text[place] != "]":
        count += 1
        try:
            value, place = _decoded(text, place)
        except (ValueError, RecursionError) as error:
            yield ImportProblem(str(path), f"member {count}", f"no JSON: {error}")
            return
        yield value
        place = _skip(text, place)
        if place < len(text) and text[place] == ",":
            place = _skip(text, place + 1)
        elif place >= len(text) or text[place] != "]":
            yield ImportProblem(str(path), f"after member {count}", 'expected "," or "]"')
            return
    if place >= len(text):
        yield ImportProblem(str(path), f"after member {count}", 'the array is not closed by "]"')


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    return place


def _lines(path: Path, text: str) -> Iterator[object | ImportProblem]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value, end = _decoded(line.strip(), 0)
            if end != len(line.strip()):
                raise ValueError("Extra data")
            yield value
        except (ValueError, RecursionError) as error:
            yield ImportProblem(str(path), f"line {number}", f"no JSON: {error}")


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
    for field in fields:
        value = message.get(field)
        if isinstance(value, str) and value.strip():
            return value
    return ""
