"""What every importer module is made of: a file, the beginning of it, a format.

In: paths on disk or members of a zip file. Out: values that a format's `detect` and `read` take.
Nothing here is written to, and no file is read before it is asked for.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias, cast

from anaphora.store.disk import open_regular, refuse_irregular
from anaphora.values.conversations import ImportedConversation, ImportProblem

_MOST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken of one file.

    `characters` is the length of one JSON value (a line, an element, a file's only value) and of
    the turns that are held at once; `parts` how many values lie within one. A zip file may become
    `times` its own size in bytes when it is unpacked, and `unpacked` in any case. `messages` and
    `conversations` are those whose identities are held while a file is read, `problems` those
    that a file is told of one by one.
    """

    characters: int = 64 << 20
    parts: int = 4_000_000
    unpacked: int = 256 << 20
    times: int = 200
    messages: int = 1_000_000
    conversations: int = 100_000
    problems: int = 1_000

    def room(self, packed: int) -> int:
        """The bytes that a zip file of `packed` bytes may become."""
        return max(self.unpacked, self.times * packed)


BOUNDS: Final = Bounds()


@dataclass(slots=True)
class Problems:
    """The first `most` problems, and how many more there were."""

    most: int
    kept: list[ImportProblem] = field(default_factory=list)
    _more: int = 0
    _last: str = ""

    def take(self, problem: ImportProblem) -> bool:
        """Keep a problem, or count it; whether it was kept."""
        if len(self.kept) < self.most:
            self.kept.append(problem)
            return True
        self._more += 1
        self._last = problem.path
        return False

    def rest(self) -> Iterator[ImportProblem]:
        """What says how many were only counted, if any were."""
        if self._more:
            yield ImportProblem(self._last, "further on", f"{self._more} more problems like these")

    def all(self) -> tuple[ImportProblem, ...]:
        """Those that were kept, and how many more there were."""
        return (*self.kept, *self.rest())


def shortened(text: str) -> str:
    """The beginning of a text out of a file, which may be of any length, for a problem."""
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"


Imported: TypeAlias = ImportedConversation | ImportProblem
Shape = Literal["elements", "lines"]

_ZIP_EPOCH_YEAR = 1980


class Malformed(ValueError):
    """A message or conversation that cannot be read, and why in words.

    It never leaves the importers: it becomes an ImportProblem.
    """


class ImportFile:
    """One file to import: a path, or a member of the zip file at that path, opened by the caller.

    `label` is how problems name it, `name` and `stem` its own name without folders, `modified`
    an aware time, `size` bytes. `consumed` counts the bytes read by the last `open`, `held` what
    drafts hold of it, in characters. What is no regular file (a pipe, a device) raises OSError.
    """

    def __init__(
        self,
        path: Path,
        member: zipfile.ZipInfo | None = None,
        archive: zipfile.ZipFile | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.path = path
        self.member = member
        self.bounds = bounds
        self._archive = archive
        name = member.filename if member is not None else path.name
        self.label = f"{path}/{name}" if member is not None else str(path)
        self.name = name.rsplit("/", 1)[-1]
        self.stem = Path(self.name).stem
        self.consumed = 0
        self.held = 0
        self.modified, self.size = self._stat()

    def problem(self, place: str, reason: str) -> ImportProblem:
        """A problem of this file."""
        return ImportProblem(self.label, shortened(place), shortened(reason))

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The file's bytes, from the start; counts what is read of them."""
        self.consumed = 0
        with self._raw() as raw:
            yield io.BufferedReader(_Counting(raw, self), 1 << 18)

    def _raw(self) -> BinaryIO:
        if self._archive is None or self.member is None:
            return open_regular(self.path)
        return cast("BinaryIO", self._archive.open(self.member))

    def _stat(self) -> tuple[datetime, int]:
        stat = self.path.stat()
        refuse_irregular(stat)
        modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        if self.member is None:
            return modified, stat.st_size
        # Zip times have no zone; 1980 is what programs write that have no time to give.
        if self.member.date_time[0] > _ZIP_EPOCH_YEAR:
            # They may also be no day of any month.
            with suppress(ValueError):
                modified = datetime(*self.member.date_time, tzinfo=UTC)
        return modified, self.member.file_size


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
