"""What every importer module is made of: a file, the beginning of it, a format.

In: paths on disk or members of a zip file. Out: values that a format's `detect` and `read` take.
Nothing here is written to, and no file is read before it is asked for.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast

from anaphora.values import ImportedConversation, ImportProblem

__all__ = [
    "Format",
    "ImportFile",
    "Imported",
    "Malformed",
    "Sample",
    "Shape",
]

Imported: TypeAlias = ImportedConversation | ImportProblem
Shape = Literal["elements", "lines"]

_ZIP_EPOCH_YEAR = 1980


class Malformed(ValueError):
    """A message or conversation that cannot be read, and why in words.

    It never leaves the importers: it becomes an ImportProblem.
    """


class ImportFile:
    """One file to import: a path, or a `member` of the zip file at that path.

    `label` is how problems name it, `name` and `stem` its own name without folders, `modified`
    an aware time, `size` bytes. `consumed` counts the bytes read by the last `open`.
    """

    def __init__(self, path: Path, member: str | None = None) -> None:
        self.path = path
        self.member = member
        self.label = f"{path}/{member}" if member else str(path)
        self.name = member.rsplit("/", 1)[-1] if member else path.name
        self.stem = Path(self.name).stem
        self.consumed = 0
        self.modified, self.size = self._stat()

    def problem(self, place: str, reason: str) -> ImportProblem:
        """A problem of this file."""
        return ImportProblem(self.label, place, reason)

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The file's bytes, from the start; counts what is read of them."""
        self.consumed = 0
        if self.member is None:
            with self.path.open("rb") as raw:
                yield io.BufferedReader(_Counting(raw, self), 1 << 18)
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as packed:
            yield io.BufferedReader(_Counting(cast("BinaryIO", packed), self), 1 << 18)

    def _stat(self) -> tuple[datetime, int]:
        stat = self.path.stat()
        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        if self.member is None:
            return modified, stat.st_size
        with zipfile.ZipFile(self.path) as archive:
            info = archive.getinfo(self.member)
        # Zip times have no zone; 1980 is what programs write that have no time to give.
        if info.date_time[0] > _ZIP_EPOCH_YEAR:
            # They may also be no day of any month.
            with suppress(ValueError):
                modified = datetime(*info.date_time, tzinfo=UTC)
        return modified, info.file_size


class _Counting(io.RawIOBase):
    """Passes bytes on and counts them, so that a progress bar can move within one long file."""

    def __init__(self, raw: BinaryIO, file: ImportFile) -> None:
        super().__init__()
        self._raw = raw
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        data = self._raw.read(len(view))
        view[: len(data)] = data
        self._file.consumed += len(data)
        return len(data)


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, enough to tell its format.

    `shape` is "lines" (one JSON value a line) or "elements" (one JSON array, or a single value);
    `values` are the first values: of at most 50 lines, or the first 3 elements of the array (of
    the single value itself). `problem` says what kept `values` empty, if something did.
    """

    file: ImportFile
    shape: Shape
    values: tuple[object, ...]
    problem: ImportProblem | None = None

    def objects(self) -> list[dict[str, object]]:
        """The values that are JSON objects."""
        return [cast("dict[str, object]", v) for v in self.values if isinstance(v, dict)]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be imported.

    `detect` says whether a sample is of this format; `read` gives the file's conversations and
    what in it could not be read, in the order of the file. `read` raises nothing but OSError and
    what a damaged zip file raises.
    """

    name: str
    detect: Callable[[Sample], bool]
    read: Callable[[ImportFile], Iterator[Imported]]
