"""The folder of a mirror: which files there are, and reading, writing and removing one.

Only Markdown files in the rooms of `layout` are ours; anything else in the folder is never read or
touched, so it may be a part of a larger vault. Links are not followed.
"""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anaphora.errors import MirrorError
from anaphora.mirror.layout import ENDING, ROOMS
from anaphora.mirror.page import FilePage, read_page
from anaphora.store.disk import FileChanged, translate

_MOST_BYTES: Final = 1 << 20
Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds since 1970, and its size in bytes."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read."""

    page: FilePage
    stamp: Stamp


class MirrorFolder:
    """A folder at `root`, which must be there: one that is not mounted must not be made."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def files(self) -> dict[str, Stamp]:
        """The Markdown files by their paths below the folder. Raises MirrorError."""
        if not self._root.is_dir():
            raise MirrorError(str(self._root), "the folder is not there")
        try:
            return dict(sorted(found for room in ROOMS for found in self._below(self._root / room)))
        except OSError as error:
            raise MirrorError(str(self._root), error.strerror or str(error)) from error

    def stamp(self, file: str) -> Stamp | None:
        """The stamp of a file, None where it is not there."""
        try:
            found = (self._root / file).lstat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None

    def read(self, file: str) -> ReadFile:
        """What a file says. Raises ValueError where that cannot be told, OSError."""
        before = self.stamp(file)
        if before is None:
            raise FileNotFoundError(file)
        if before[1] > _MOST_BYTES:
            raise ValueError(f"it is longer than {_MOST_BYTES:,} bytes")
        data = (self._root / file).read_bytes()
        if self.stamp(file) != before:
            raise FileChanged(file)
        if b"\0" in data:
            raise ValueError("it is not text")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 (byte {error.start})") from None
        return ReadFile(read_page(text), before)

    def write(self, file: str, text: str, before: Stamp | None) -> Stamp:
        """Put a file in place, whole; its stamp.

        The home has every word of it, so that nothing waits for the disk: a file that a power cut
        has emptied is written again. Raises FileChanged where there is another one than `before`,
        StoreError and its kinds.
        """
        path = self._root / file
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(text.encode("utf-8", "replace"))
            if self.stamp(file) != before:
                raise FileChanged(file)
            temporary.replace(path)
        except FileChanged:
            raise
        except OSError as error:
            raise translate(error, "write", path) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        found = path.stat()
        return (found.st_mtime_ns, found.st_size)

    def remove(self, file: str, before: Stamp) -> None:
        """Remove a file, and folders that are empty then. FileChanged as for `write`."""
        path = self._root / file
        if self.stamp(file) != before:
            raise FileChanged(file)
        try:
            path.unlink()
        except OSError as error:
            raise translate(error, "remove", path) from error
        for folder in path.parents:
            if self._root in (folder.parent, folder):
                break
            with suppress(OSError):
                folder.rmdir()

    def _below(self, room: Path) -> Iterator[tuple[str, Stamp]]:
        if not room.is_dir():
            return
        with os.scandir(room) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._below(Path(entry.path))
                elif entry.name.endswith(ENDING) and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    place = Path(entry.path).relative_to(self._root).as_posix()
                    yield place, (found.st_mtime_ns, found.st_size)
