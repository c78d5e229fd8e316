"""Public data sets of conversations with questions: REALTALK, LoCoMo, BEAM and LongMemEval.

`read_dataset` gives the conversations of a file or a folder, as `Memory.import_` takes them, with
the questions asked about them and the messages that answer each. What cannot be read comes out as
an `ImportProblem` with its place, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.values.conversations import ImportProblem
from bench.datasets.beam import read_beam
from bench.datasets.common import Haystack, MessageKey, Question
from bench.datasets.dialogues import read_locomo, read_realtalk
from bench.datasets.longmemeval import read_longmemeval

__all__ = [
    "FORMATS",
    "SETS",
    "Haystack",
    "MessageKey",
    "Question",
    "haystacks",
    "read_dataset",
]

FORMATS: Mapping[str, Callable[[Path, Bounds], Iterator[Haystack | ImportProblem]]] = {
    "realtalk": read_realtalk,
    "locomo": read_locomo,
    "beam": read_beam,
    "longmemeval": read_longmemeval,
}

SETS = (("realtalk", "realtalk"), ("beam", "beam-100k"))
"""(form, folder) of the data sets that most measurements use."""


def haystacks(data: Path, form: str | None = None) -> Iterator[tuple[str, Haystack]]:
    """(form, chat) of both data sets of `SETS`, or of one, in their order."""
    for name, folder in SETS:
        if form in {None, name}:
            for found in read_dataset(data / "conversations" / folder, name):
                if isinstance(found, Haystack):
                    yield name, found


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
