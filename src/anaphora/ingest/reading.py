"""Files to import, read in a worker process: what they hold comes item by item.

A file that takes too much memory or time ends the worker, and is a problem; the files behind it are
read by another worker.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from anaphora.core.plain import Types, types_of
from anaphora.core.worker import Piece, WorkerEnded, WorkerFailed, WorkerLimits, call_in_worker
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.ingest.importers import check_source, found_imports
from anaphora.ingest.importers.base import Bounds, ImportItem
from anaphora.ingest.problems import shortened
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from anaphora.values.imports import ImportedElse, ImportedMemory, ImportedWhole
from anaphora.values.memories import NewMemory
from anaphora.values.sessions import SessionPlace, ToolCall


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file begins: its label, and its size in bytes."""

    label: str
    size: int


@dataclass(frozen=True, slots=True)
class ReadItem:
    """What a file gave, and how many bytes of it were read by then."""

    item: ImportItem
    done: int


_TYPES: Final[Types] = types_of(
    ImportedConversation,
    ImportedElse,
    ImportedMemory,
    ImportedTurn,
    ImportedWhole,
    ImportProblem,
    InvalidInput,
    NewMemory,
    ReadFile,
    ReadItem,
    SessionPlace,
    ToolCall,
    UnknownFormat,
)
_MOST_ENDED: Final = 10
"""Files of one source at which a worker may be ended; what is behind them is not read any more."""
_BYTES: Final = 8
"""Bytes of the answer that a character may take, as most are no astral ones."""


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A path to import from, as the caller named it: its `format`, and the `name` of an upload."""

    path: Path
    format: str | None
    name: str
    bounds: Bounds

    def check(self) -> ImportProblem | None:
        """Raise UnknownFormat or InvalidInput for what cannot be imported.

        What takes too much to find that out is a problem.
        """
        words = (os.getcwd(), str(self._for_worker()), self.format, self.name)  # noqa: PTH109 - as text
        try:
            list(call_in_worker(check_in_worker, *words, limits=self._limits(), types=_TYPES))
        except (WorkerEnded, WorkerFailed) as error:
            return self._problem(str(self.path), error)
        except InvalidInput as error:
            raise self._as_named(error) from None
        return None

    def read(self) -> Generator[ReadFile | ReadItem, None, None]:
        """Every file, each before what it gives."""
        begun = ended = 0
        while True:
            label, before = str(self.path), begun
            try:
                for value in self._values(begun):
                    if isinstance(value, ReadFile):
                        begun, label = begun + 1, value.label
                    yield value
                return
            except (WorkerEnded, WorkerFailed) as error:
                ended += 1
                yield ReadItem(self._problem(label, error), 0)
            if begun == before:
                # It is no file, but what stands between two: the rest cannot be had either.
                return
            if ended >= _MOST_ENDED:
                reason = f"reading was ended {ended} times; what is behind it was not read"
                yield ReadItem(ImportProblem(str(self.path), "file", reason), 0)
                return

    def _values(self, skip: int) -> Iterator[ReadFile | ReadItem]:
        where = self._for_worker()
        words = (os.getcwd(), str(where), self.format, self.name)  # noqa: PTH109 - as above
        limits = self._limits()
        for value in call_in_worker(
            read_in_worker, *words, self.bounds, skip, limits=limits, types=_TYPES
        ):
            renamed = where != self.path and isinstance(value, ReadItem)
            yield replace(value, item=self._named(value.item)) if renamed else value

    def _for_worker(self) -> Path:
        """The path as another process finds it: that of an open file is this process's own."""
        text = str(self.path)
        start = "/proc/self/"
        if not text.startswith(start):
            return self.path
        return Path(f"/proc/{os.getpid()}", text.removeprefix(start))

    def _named(self, item: Any) -> Any:
        if not isinstance(item, ImportProblem):
            return item
        return replace(item, path=item.path.replace(str(self._for_worker()), str(self.path), 1))

    def _as_named(self, error: InvalidInput) -> InvalidInput:
        other = str(self._for_worker())
        if other != str(self.path):
            error.value = error.value.replace(other, str(self.path))
            error.args = (str(error).replace(other, str(self.path)),)
        return error

    def _limits(self) -> WorkerLimits:
        size = 0
        with suppress(OSError):
            size = self.path.stat().st_size
        return WorkerLimits(
            seconds=_seconds(self.bounds, size),
            memory=self.bounds.memory,
            output=_BYTES * self.bounds.characters + (1 << 20),
            files=self.bounds.files,
        )

    def _problem(self, label: str, error: Exception) -> ImportProblem:
        failed = isinstance(error, WorkerFailed)
        reason = f"its reader failed ({error})" if failed else str(error)
        return ImportProblem(shortened(label), "file", shortened(reason))


def check_in_worker(folder: str, path: str, form: str | None, name: str) -> Iterator[None]:
    """Yields nothing. Raises UnknownFormat or InvalidInput. Runs in a worker."""
    with suppress(OSError):
        os.chdir(folder)
    check_source(path, form, name)
    yield from ()


def read_in_worker(
    folder: str, path: str, form: str | None, name: str, bounds: Bounds, skip: int
) -> Iterator[ReadFile | ReadItem | Piece]:
    """The files under a path but for the first `skip`. Runs in a worker, in the caller's folder."""
    with suppress(OSError):
        os.chdir(folder)
    for number, file in enumerate(found_imports(path, form, bounds, name)):
        if number < skip:
            continue
        _, size = file.progress()
        yield Piece(_seconds(bounds, size))
        yield ReadFile(file.label, size)
        for item in file.items:
            yield ReadItem(item, file.progress()[0])
        # What lies between two files has its own time.
        yield Piece(_seconds(bounds, 0))


def _seconds(bounds: Bounds, size: int) -> float:
    return bounds.seconds + bounds.seconds_each * size / 1_000_000
