"""Public data sets of conversations with questions: REALTALK, LoCoMo, BEAM and LongMemEval.

`read_dataset` gives the conversations of a file or a folder, as `Memory.import_` takes them, with
the questions asked about them and the messages that answer each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from anaphora.errors import InvalidInput, UnknownFormat
from bench.datasets.beam import read_beam
from bench.datasets.common import Haystack, MessageKey, Question
from bench.datasets.dialogues import read_locomo, read_realtalk
from bench.datasets.longmemeval import read_longmemeval

__all__ = ["FORMATS", "SETS", "Haystack", "MessageKey", "Question", "haystacks", "read_dataset"]

FORMATS: Mapping[str, Callable[[Path], Iterator[Haystack]]] = {
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
            for chat in read_dataset(data / "conversations" / folder, name):
                yield name, chat


def read_dataset(path: Path, form: str) -> Iterator[Haystack]:
    """The chats of a data set with their questions, in the order of the data set.

    Raises `InvalidInput` for a form that is not one of `FORMATS` or a path that does not exist, and
    `UnknownFormat` where a file is not of this form.
    """
    if form not in FORMATS:
        raise InvalidInput("format", form, "expected one of " + ", ".join(FORMATS))
    if not path.exists():
        raise InvalidInput("path", str(path), "no such file or directory")
    try:
        yield from FORMATS[form](path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnknownFormat("path", str(path), f"no {form}: {error!r}") from error
