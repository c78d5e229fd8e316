"""The folder of a mirror: which files there are, and reading, writing and removing one.

Only Markdown files in the rooms of `layout` are mirrored; anything else in the folder is never read
or touched, so it may be a part of a larger vault. No link in the folder is followed, at any part of
a path, and a file that has a second name (a hard link) is not read. New files and folders are
for this user alone; in a folder that a group or others may write, for those as well.
"""

from __future__ import annotations

import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from anaphora.errors import MirrorError
from anaphora.features.mirror.layout import ENDING, ROOMS
from anaphora.features.mirror.opened import LinkRefused, OpenedFolder, is_link
from anaphora.features.mirror.page import FilePage, read_page
from anaphora.store.disk import FileChanged, translate

_MOST_BYTES: Final = 1 << 20
_DEEPEST: Final = 520
"""Folders within folders: more than the longest path of a memory has steps."""
_LEFT_OVER: Final = re.compile(r"\.[0-9a-f]{32}\.tmp")
Stamp = tuple[int, int]
"""When a file was changed, in nanoseconds since 1970, and its size in bytes."""


@dataclass(frozen=True, slots=True)
class MirrorFileText:
    """A file that was read."""

    page: FilePage
    stamp: Stamp


@dataclass(slots=True)
class FoundFiles:
    """What lies in the folder: the stamps of Markdown files, the paths of links, and those of
    folders that lie too deep to be looked into."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    links: set[str] = field(default_factory=set)
    deep: set[str] = field(default_factory=set)


class MirrorFolder:
    """A folder at `root`, which must be there: one that is not mounted must not be made."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def files(self, *, clean: bool = False) -> FoundFiles:
        """The Markdown files by their paths below the folder. Raises MirrorError.

        With `clean`, temporary files that a killed process has left are removed.
        """
        if not self._root.is_dir():
            raise MirrorError(str(self._root), "the folder is not there")
        files = FoundFiles()
        try:
            with OpenedFolder.open(self._root) as root:
                for room in ROOMS:
                    status = root.status(room)
                    if status is None:
                        continue
                    if is_link(status):
                        files.links.add(room)
                    elif stat.S_ISDIR(status.st_mode):
                        self._scan(root, room, files, clean=clean)
        except OSError as error:
            raise MirrorError(str(self._root), error.strerror or str(error)) from error
        files.stamps = dict(sorted(files.stamps.items()))
        return files

    def stamp(self, file: str) -> Stamp | None:
        """The stamp of a file, None if it does not exist."""
        try:
            with self._parent(file) as (folder, name):
                return _stamp(folder, name)
        except OSError:
            return None

    def read(self, file: str) -> MirrorFileText:
        """The content of a file. Raises ValueError if it cannot be read as a page, OSError."""
        with self._parent(file) as (folder, name):
            stamp_before = _stamp(folder, name)
            if stamp_before is None:
                raise FileNotFoundError(file)
            if stamp_before[1] > _MOST_BYTES:
                raise ValueError(f"it is longer than {_MOST_BYTES:,} bytes")
            if (status := folder.status(name)) is not None and status.st_nlink > 1:
                raise ValueError("it has a second name (a hard link)")
            with folder.open_file(name) as open_file:
                content = open_file.read(_MOST_BYTES + 1)
            if _stamp(folder, name) != stamp_before:
                raise FileChanged(file)
        if b"\0" in content:
            raise ValueError("it is not text")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 (byte {error.start})") from None
        return MirrorFileText(read_page(text), stamp_before)

    def write(self, file: str, text: str, before: Stamp | None) -> Stamp:
        """Write a file atomically; its stamp.

        It is not flushed to disk, as the home has all of its text: a file that a power cut has
        emptied is written again. Raises FileChanged if the present one is not `before`,
        LinkRefused, StoreError and its kinds.
        """
        try:
            with self._parent(file, make=True) as (folder, name):
                return self._replace(folder, name, text.encode("utf-8", "replace"), before)
        except (FileChanged, LinkRefused):
            raise
        except OSError as error:
            raise translate(error, "write", self._root / file) from error

    def remove(self, file: str, before: Stamp) -> None:
        """Remove a file, and folders that are empty then. Raises as `write`."""
        try:
            with self._parent(file) as (folder, name):
                if _stamp(folder, name) != before:
                    raise FileChanged(file)
                folder.unlink(name)
        except (FileChanged, LinkRefused):
            raise
        except OSError as error:
            raise translate(error, "remove", self._root / file) from error
        self._remove_empty(file)

    def rename(self, file: str, new: str, before: Stamp) -> None:
        """Give a file another name that no file has. Raises as `write`."""
        try:
            with (
                self._parent(file) as (folder, name),
                self._parent(new, make=True) as (target, new_name),
            ):
                if _stamp(folder, name) != before or target.status(new_name) is not None:
                    raise FileChanged(file)
                folder.move(name, new_name, target)
        except (FileChanged, LinkRefused):
            raise
        except OSError as error:
            raise translate(error, "rename", self._root / file) from error
        self._remove_empty(file)

    def _replace(self, folder: OpenedFolder, name: str, data: bytes, before: Stamp | None) -> Stamp:
        status = folder.status(name)
        if status is not None and is_link(status):
            raise LinkRefused(name)
        is_file = status is not None and stat.S_ISREG(status.st_mode)
        mode = stat.S_IMODE(status.st_mode) if status is not None and is_file else self._mode(0o600)
        temporary = f".{uuid.uuid4().hex}.tmp"
        try:
            folder.create(temporary, data, mode)
            if _stamp(folder, name) != before:
                raise FileChanged(name)
            folder.move(temporary, name)
        finally:
            with suppress(OSError):
                folder.unlink(temporary)
        stamp = _stamp(folder, name)
        if stamp is None:
            raise FileChanged(name)
        return stamp

    def _mode(self, private: int) -> int:
        """The mode of a new file or folder: private, plus those that can write the root."""
        root_mode = stat.S_IMODE(self._root.stat().st_mode)
        group = private >> 3 if root_mode & stat.S_IWGRP else 0
        world = private >> 6 if root_mode & stat.S_IWOTH else 0
        return private | group | world

    @contextmanager
    def _parent(self, file: str, *, make: bool = False) -> Iterator[tuple[OpenedFolder, str]]:
        """The opened folder of a file, and the file's name in it."""
        *folder_names, name = PurePosixPath(file).parts
        mode = self._mode(0o700) if make else None
        with OpenedFolder.open(self._root) as root, root.below(tuple(folder_names), mode) as folder:
            yield folder, name

    def _remove_empty(self, file: str) -> None:
        folder_names = PurePosixPath(file).parts[:-1]
        for count in range(len(folder_names), 1, -1):
            with suppress(OSError), self._parent("/".join(folder_names[:count])) as (folder, name):
                folder.remove_empty(name)

    def _scan(self, parent: OpenedFolder, path: str, files: FoundFiles, *, clean: bool) -> None:
        with parent.below((PurePosixPath(path).name,)) as folder:
            for name, status in folder.entries():
                if clean and _LEFT_OVER.fullmatch(name) and stat.S_ISREG(status.st_mode):
                    with suppress(OSError):
                        folder.unlink(name)
                if name.startswith("."):
                    continue
                file = f"{path}/{name}"
                if is_link(status):
                    files.links.add(file)
                elif stat.S_ISDIR(status.st_mode) and path.count("/") >= _DEEPEST:
                    files.deep.add(file)
                elif stat.S_ISDIR(status.st_mode):
                    self._scan(folder, file, files, clean=clean)
                elif name.endswith(ENDING) and stat.S_ISREG(status.st_mode):
                    files.stamps[file] = (status.st_mtime_ns, status.st_size)


def _stamp(folder: OpenedFolder, name: str) -> Stamp | None:
    status = folder.status(name)
    if status is None or not stat.S_ISREG(status.st_mode):
        return None
    return status.st_mtime_ns, status.st_size
