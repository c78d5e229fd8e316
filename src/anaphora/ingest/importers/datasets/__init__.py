"""Public data sets of conversations with questions: REALTALK, LoCoMo, BEAM and LongMemEval.

In: a file or a directory in one of the four formats. Out: what `anaphora conversation import` takes
(`read`), or the same conversations with the questions asked about them and the messages that
answer each (`read_dataset`). It never writes and never guesses: what cannot be read comes out as an
`ImportProblem` with its place, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.ingest.importers.base import BOUNDS, Bounds
from anaphora.ingest.importers.datasets.beam import read_beam
from anaphora.ingest.importers.datasets.common import Haystack, MessageKey, Question
from anaphora.ingest.importers.datasets.dialogues import read_locomo, read_realtalk
from anaphora.ingest.importers.datasets.longmemeval import read_longmemeval
from anaphora.values.conversations import ImportedConversation, ImportProblem

__all__ = [
    "FORMATS",
    "Haystack",
    "MessageKey",
    "Question",
    "detect",
    "read",
    "read_dataset",
]

FORMATS: Mapping[str, Callable[[Path, Bounds], Iterator[Haystack | ImportProblem]]] = {
    "realtalk": read_realtalk,
    "locomo": read_locomo,
    "beam": read_beam,
    "longmemeval": read_longmemeval,
}


def read_dataset(
    path: Path | str,
    format: str,  # noqa: A002
    bounds: Bounds = BOUNDS,
) -> Iterator[Haystack | ImportProblem]:
    """The chats of a data set with their questions, in the order of the data set.

    Raises `InvalidInput` for a format that is not one of `FORMATS` or a path that does not exist.
    """
    reader = FORMATS.get(format)
    if reader is None:
        raise InvalidInput("format", format, "expected one of " + ", ".join(FORMATS))
    place = Path(path)
    if not place.exists():
        raise InvalidInput("path", str(path), "no such file or directory")
    return reader(place, bounds)


def read(
    path: Path | str,
    format: str,  # noqa: A002 - the word that users know
    bounds: Bounds = BOUNDS,
) -> Iterator[ImportedConversation | ImportProblem]:
    """The conversations alone, each once: haystacks of several questions share their sessions."""
    seen: set[tuple[str, str]] = set()
    for found in read_dataset(path, format, bounds):
        if isinstance(found, ImportProblem):
            yield found
            continue
        for conversation in found.conversations:
            if (conversation.source, conversation.key) not in seen:
                seen.add((conversation.source, conversation.key))
                yield conversation


def detect(value: object) -> str | None:
    """The format of a parsed JSON value, if nothing but one of these data sets looks like it.

    A list is judged by its first member. BEAM is not told from other role-and-content logs.
    """
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, Mapping):
        return None
    if isinstance(first.get("haystack_sessions"), list) and "question_id" in first:
        return "longmemeval"
    inner = first.get("conversation")
    if isinstance(inner, Mapping) and "session_1" in inner and "qa" in first:
        return "locomo"
    session = first.get("session_1")
    if isinstance(session, list) and session and isinstance(session[0], Mapping):
        return "realtalk" if {"clean_text", "dia_id"} <= set(session[0]) else None
    return None
