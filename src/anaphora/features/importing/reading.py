"""Files to import, read in a worker process: what they hold comes item by item.

A file that takes too much memory or time ends the worker, and is a problem; the files behind it are
read by another worker.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.features.importing.values import (
    ImportedElse,
    ImportedFile,
    ImportedMemory,
    ImportedWhole,
)
from anaphora.ingest.bounds import Bounds
from anaphora.ingest.problems import shortened
from anaphora.system.worker import (
    WorkerEnded,
    WorkerFailed,
    WorkerLimits,
    call_in_worker,
    path_for_worker,
)
from anaphora.values.conversations import ImportedConversation, ImportedTurn, ImportProblem
from anaphora.values.memories import NewMemory
from anaphora.values.plain import Types, types_of
from anaphora.values.sessions import SessionPlace, ToolCall

if TYPE_CHECKING:
    from anaphora.features.importing.formats.base import ImportItem

# By their names: what reads the formats is imported in workers alone.
_CHECK: Final = "anaphora.features.importing.reading_child:check"
_MEMBER: Final = "anaphora.features.importing.reading_child:member"
_READ: Final = "anaphora.features.importing.reading_child:read"


@dataclass(frozen=True, slots=True)
class FileStarted:
    """A file begins: its label, and its size in bytes."""

    label: str
    size: int


@dataclass(frozen=True, slots=True)
class ReadItem:
    """A result of reading a file, and how many bytes of it were read by then."""

    item: ImportItem
    done: int


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """Where reading goes on: behind the first `skip` files. With `each` every file is told before
    it is read, without it only those that are not small."""

    skip: int
    each: bool


_TYPES: Final[Types] = types_of(
    ImportedConversation,
    ImportedElse,
    ImportedFile,
    ImportedMemory,
    ImportedTurn,
    ImportedWhole,
    ImportProblem,
    InvalidInput,
    NewMemory,
    FileStarted,
    ReadItem,
    SessionPlace,
    ToolCall,
    UnknownFormat,
)
SMALL: Final = 64 << 10
"""Bytes of a file that may be told together with others."""
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

    def check(self) -> None:
        """Raise InvalidInput for a path that does not exist, UnknownFormat for such a format."""
        if not self.path.exists():
            raise InvalidInput("path", str(self.path), "no such file or directory")
        if self.format is not None:
            list(call_in_worker(_CHECK, self.format, limits=self._make_limits(), types=_TYPES))

    def take(self, file: ImportedFile) -> tuple[Path | bytes, str | None]:
        """A file that was found: its path, or its bytes, and its name where its path is none.

        Raises InvalidInput with the reason where it cannot be read any more.
        """
        path = self.path / file.path if file.path else self.path
        shown_path = self.name if self.name and not file.path else path.absolute().as_posix()
        if not file.member:
            return path, self.name or None
        try:
            pieces = call_in_worker(
                _MEMBER,
                str(path_for_worker(path)),
                file.member,
                limits=self._make_limits(),
                types=_TYPES,
            )
            content = b"".join(base64.b64decode(piece) for piece in pieces)
        except (WorkerEnded, WorkerFailed) as error:
            raise InvalidInput("document", file.member, str(error)) from error
        return content, f"{shown_path}/{file.member}"

    def read(self) -> Generator[FileStarted | ReadItem, None, None]:
        """Every file, each before what it gives."""
        begun = item_count = end_count = already_read = 0
        current = FileStarted(str(self.path), 0)
        singly = False
        while True:
            new_files = 0
            try:
                for answer in self._call_worker(begun - (already_read > 0), each=singly):
                    new_files += isinstance(answer, FileStarted)
                    if already_read:
                        already_read -= 1
                        continue
                    if isinstance(answer, FileStarted):
                        begun, item_count, current = begun + 1, 0, answer
                    else:
                        item_count += 1
                    yield answer
                return
            except (WorkerEnded, WorkerFailed) as error:
                if not singly and current.size <= SMALL:
                    # It was this small file, or one of those behind it that were not told yet.
                    singly, already_read = True, 1 + item_count if begun else 0
                    continue
                end_count += 1
                is_failed = isinstance(error, WorkerFailed)
                reason = f"its reader failed ({error})" if is_failed else str(error)
                problem = ImportProblem(shortened(current.label), "file", shortened(reason))
                yield ReadItem(problem, 0)
            if not new_files:
                # It is no file, but what stands between two: the rest cannot be had either.
                return
            if end_count >= _MOST_ENDED:
                reason = f"reading was ended {end_count} times; what is behind it was not read"
                yield ReadItem(ImportProblem(str(self.path), "file", reason), 0)
                return
            current, already_read = FileStarted(str(self.path), 0), 0

    def _call_worker(self, skip: int, *, each: bool) -> Iterator[FileStarted | ReadItem]:
        worker_path = path_for_worker(self.path)
        words = (os.getcwd(), str(worker_path), self.format, self.name)  # noqa: PTH109 - as above
        limits = self._make_limits()
        for answer in call_in_worker(
            _READ, *words, self.bounds, ReadFrom(skip, each), limits=limits, types=_TYPES
        ):
            if (
                worker_path != self.path
                and isinstance(answer, ReadItem)
                and isinstance(problem := answer.item, ImportProblem)
            ):
                path = problem.path.replace(str(worker_path), str(self.path), 1)
                yield replace(answer, item=replace(problem, path=path))
            else:
                yield answer

    def _make_limits(self) -> WorkerLimits:
        size = 0
        with suppress(OSError):
            size = self.path.stat().st_size
        return WorkerLimits(
            seconds=self.bounds.seconds_for(size),
            memory=self.bounds.memory,
            output=_BYTES * self.bounds.characters + (1 << 20),
            files=self.bounds.files,
        )
