"""The parts of every importer: a file with its bounds, the beginning of it, a format.

A file is a path on the disk or a member of a zip file; it is not read before it is asked for.
What is beyond its bounds (`ingest.bounds`) is left out and reported with its place.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias, cast

from anaphora.features.importing.formats.packed import Unpacked, split_name
from anaphora.features.importing.values import (
    ImportedElse,
    ImportedFile,
    ImportedMemory,
    ImportedWhole,
)
from anaphora.ingest.bounds import BOUNDS, Bounds
from anaphora.ingest.problems import shortened
from anaphora.store.disk import open_regular, refuse_irregular
from anaphora.values.conversations import ImportedConversation, ImportProblem

ImportItem: TypeAlias = (
    ImportedConversation
    | ImportedMemory
    | ImportedWhole
    | ImportedElse
    | ImportedFile
    | ImportProblem
)
Shape = Literal["elements", "lines", "database"]

_ZIP_EPOCH_YEAR: Final = 1980
_SMALL: Final = 64 << 10


def too_long(bounds: Bounds) -> str:
    """The reason of a problem with a value beyond the bounds."""
    return f"longer than {bounds.characters:,} characters; it was skipped"


class Malformed(ValueError):
    """A message or conversation that cannot be read, and why in words.

    It never leaves the importers: it becomes an ImportProblem.
    """


UNEXPECTED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a reader may raise about a value that is of another type than it expects; Malformed is one
of them."""
FAILED: Final = "its reader failed"
"""The beginning of an unexpected problem."""


def why(error: Exception) -> str:
    """Why a value could not be read, in words."""
    return str(error) if isinstance(error, Malformed) else failure(error)


def failure(error: Exception) -> str:
    """The message of an error that no reader has expected."""
    return f"{FAILED} ({type(error).__name__}: {error})"


def as_object(value: object, what: str) -> dict[str, object]:
    """The value, which must be a JSON object; raises Malformed about `what` if it is not one."""
    if isinstance(value, dict):
        return value
    raise Malformed(f"{what} that is a {type(value).__name__}, not an object")


def text_at(value: Mapping[str, object], name: str) -> str:
    """The text in a field; raises Malformed if it is missing or something else."""
    text = value.get(name)
    if isinstance(text, str):
        return text
    defect = "missing" if text is None else f"a {type(text).__name__}, not text"
    raise Malformed(f"{name!r} is {defect}")


def mapping_at(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    """The object in a field; raises Malformed if it is missing or something else."""
    nested_mapping = value.get(name)
    if isinstance(nested_mapping, dict):
        return nested_mapping
    defect = (
        "missing" if nested_mapping is None else f"a {type(nested_mapping).__name__}, not an object"
    )
    raise Malformed(f"{name!r} is {defect}")


def objects_in(value: object) -> list[dict[str, object]]:
    """The JSON objects of a list; of what is no list, none."""
    if not isinstance(value, list):
        return []
    return [element for element in value if isinstance(element, dict)]


class ImportFile:
    """One file to import: a path, or a member of the zip file at that path, opened by the caller.

    What was sent under another `name` than that of the file it lies in goes by that.

    `label` is how problems name it, `name` and `stem` its own name without folders, `relative` the
    same below the folder that was named, which it begins with ("Notes/Work/Staging.md"), `modified`
    an aware time, `size` bytes. What is `packing` ("zst") it is unpacked as it is read, and goes by
    the name that it had before. `consumed` counts the bytes read by the last `open`, `held` what
    drafts hold of it, in characters, `made_keys` the keys that its chats without an id got.
    `tentative`: its name is not that of an export, `of_notes`: it lies in a folder of notes,
    `is_database`: it is one of SQLite. If formats share the file, `wanted` takes the values of the
    one that reads it, and `later` is set for all but the first. What is no regular file (a pipe, a
    device) raises OSError.
    """

    def __init__(
        self,
        path: Path,
        member: zipfile.ZipInfo | None = None,
        archive: zipfile.ZipFile | None = None,
        bounds: Bounds = BOUNDS,
        relative: str = "",
        name: str = "",
    ) -> None:
        self.path = path
        self.member = member
        self.bounds = bounds
        self._archive = archive
        self._bytes: bytes | None = None
        name = member.filename if member is not None else name or path.name
        self.label = f"{path}/{name}" if member is not None else str(path)
        self.name, self.packing = split_name(name.rsplit("/", 1)[-1])
        self.stem = Path(self.name).stem
        self.relative = relative or self.name
        self.in_folder = bool(relative)
        self.consumed = 0
        self.held = 0
        self.made_keys: Counter[str] = Counter()
        self.tentative = False
        self.of_notes = False
        self.is_database = False
        self.wanted: Callable[[object], bool] | None = None
        self.later = False
        stat = self.path.stat()
        refuse_irregular(stat)
        modified_at = datetime.fromtimestamp(stat.st_mtime, UTC)
        if self.member is None:
            self.modified, self.size = modified_at, stat.st_size
        else:
            # Zip times have no zone; 1980 is what programs write that have no time to give.
            if self.member.date_time[0] > _ZIP_EPOCH_YEAR:
                # They may also be no day of any month.
                with suppress(ValueError):
                    modified_at = datetime(*self.member.date_time, tzinfo=UTC)
            self.modified, self.size = modified_at, self.member.file_size

    def problem(self, place: str, reason: str) -> ImportProblem:
        """A problem of this file."""
        return ImportProblem(self.label, shortened(place), shortened(reason))

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The file's bytes, from the start; counts what is read of them."""
        self.consumed = 0
        with self._raw() as raw:
            contents = raw
            if self.packing:
                room = self.bounds.room(self.size)
                contents = cast("BinaryIO", Unpacked(raw, self.packing, room))
            yield io.BufferedReader(_CountingReader(contents, self), 1 << 18)

    def progress(self) -> tuple[int, int]:
        """Bytes read so far, and bytes in all."""
        return min(self.consumed, self.size) if self.packing else self.consumed, self.size

    def beside(self, name: str, up: int = 0) -> Path | None:
        """Another file on the disk beside this one, or `up` folders further up."""
        return None if self.member is not None else self.path.parents[up] / name

    def _raw(self) -> BinaryIO:
        if self._archive is not None and self.member is not None:
            return cast("BinaryIO", self._archive.open(self.member))
        # A small file is held: it is opened several times until its format is known.
        if 0 < self.size <= _SMALL:
            if self._bytes is None:
                with open_regular(self.path) as file:
                    self._bytes = file.read(_SMALL + 1)
            # It may have grown meanwhile.
            if len(self._bytes) <= _SMALL:
                return io.BytesIO(self._bytes)
        return open_regular(self.path)


class _CountingReader(io.RawIOBase):
    """Passes bytes on and counts them, so that a progress bar can move within one long file."""

    def __init__(self, raw: BinaryIO, file: ImportFile) -> None:
        super().__init__()
        self._raw = raw
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        chunk = self._raw.read(len(view))
        view[: len(chunk)] = chunk
        self._file.consumed += len(chunk)
        return len(chunk)


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, enough to tell its format.

    `shape` is "lines" (one JSON value a line) or "elements" (one JSON array, or a single value);
    `values` are the first values: of at most 50 lines, or the first 3 elements of the array (of
    the single value itself). `problem` says what kept `values` empty, if something did. `head` are
    the first bytes, whatever they are. Of a "database" of SQLite there are no values, but the
    columns of its tables.
    """

    file: ImportFile
    shape: Shape
    values: tuple[object, ...]
    problem: ImportProblem | None = None
    head: bytes = b""
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has_table(self, name: str, *columns: str) -> bool:
        """Whether it is a database with such a table."""
        return name in self.tables and set(columns) <= set(self.tables[name])

    def objects(self) -> list[dict[str, object]]:
        """The values that are JSON objects."""
        return [cast("dict[str, object]", v) for v in self.values if isinstance(v, dict)]


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be imported.

    `companions` matches the paths of other files that its program keeps beside its own, without
    words of the user. `detect` says whether a sample is of this format; `read` gives the file's
    conversations and memories, and what in it could not be read, in the order of the file. `read`
    raises nothing but OSError and what a damaged zip file or database raises.
    """

    name: str
    detect: Callable[[Sample], bool]
    read: Callable[[ImportFile], Iterator[ImportItem]]
    companions: re.Pattern[str] | None = None


def companions(names: str, folders: str = "") -> re.Pattern[str]:
    """Matches paths that end in one of these names, or lie in one of these folders.

    Both are alternatives of a regular expression.
    """
    return re.compile(rf"(?:^|/)(?:(?:{names})$|(?:{folders or names})/)")
