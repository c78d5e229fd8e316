"""A folder that is opened step by step, so that no link on the way to a file is followed.

Where the system can open a name in an open folder (POSIX), a folder that is exchanged for a link
meanwhile cannot lead elsewhere. Windows cannot: there every name is checked before it is used,
and links and junctions (reparse points) are refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from anaphora.store.disk import refuse_irregular

_IN_FOLDERS: Final = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_READ: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_REPARSE: Final = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)


class LinkRefused(OSError):
    """A link lies where a folder or file was expected."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ELOOP, "it is a link, or lies behind one", name)


def is_link(status: os.stat_result) -> bool:
    """Whether this is the status of a symbolic link, or of a junction."""
    attributes = getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(attributes & _REPARSE)


class OpenedFolder:
    """A folder that follows no links below it. Every method raises OSError."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    @contextmanager
    def open(cls, root: Path) -> Iterator[OpenedFolder]:
        """The folder at `root`, which may itself be a link: its name is the user's choice."""
        handle = os.open(root, _FOLDER) if _IN_FOLDERS else None
        try:
            yield cls(root, handle)
        finally:
            if handle is not None:
                os.close(handle)

    @contextmanager
    def below(self, names: tuple[str, ...], make: int | None = None) -> Iterator[OpenedFolder]:
        """The folder at these names; with `make`, missing ones are made with this mode."""
        if not names:
            yield self
            return
        with self._open_child(names[0], make) as child, child.below(names[1:], make) as last_folder:
            yield last_folder

    def status(self, name: str) -> os.stat_result | None:
        """The status of this name, of a link its own; None if it does not exist."""
        try:
            return os.stat(self._name(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """The names in it with their statuses, in order."""
        folder_handle = self._path if self._handle is None else self._handle
        with os.scandir(folder_handle) as folder_entries:
            names = sorted(child.name for child in folder_entries)
        statuses = ((name, self.status(name)) for name in names)
        return [(name, status) for name, status in statuses if status is not None]

    def open_file(self, name: str) -> BinaryIO:
        """A regular file, for reading."""
        self._refuse_link(name)
        descriptor = os.open(self._name(name), _READ | _NO_FOLLOW, dir_fd=self._handle)
        file = os.fdopen(descriptor, "rb")
        try:
            refuse_irregular(os.fstat(descriptor))
        except OSError:
            file.close()
            raise
        return file

    def create(self, name: str, data: bytes, mode: int) -> None:
        """Make a file that is not there yet, with exactly this mode."""
        descriptor = os.open(self._name(name), _CREATE | _NO_FOLLOW, 0o600, dir_fd=self._handle)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)

    def move(self, name: str, new: str, into: OpenedFolder | None = None) -> None:
        """Give a file another name, here or in another folder, replacing a file of that name."""
        target = into or self
        os.replace(
            self._name(name), target._name(new),
            src_dir_fd=self._handle, dst_dir_fd=target._handle,
        )  # fmt: skip

    def unlink(self, name: str) -> None:
        """Remove a file; of a link, the link."""
        os.unlink(self._name(name), dir_fd=self._handle)

    def remove_empty(self, name: str) -> None:
        """Remove a folder that is empty."""
        os.rmdir(self._name(name), dir_fd=self._handle)

    @contextmanager
    def _open_child(self, name: str, make: int | None) -> Iterator[OpenedFolder]:
        status = self.status(name)
        if status is None and make is not None:
            with suppress(FileExistsError):
                os.mkdir(self._name(name), make, dir_fd=self._handle)
        self._refuse_link(name)
        path = self._path / name
        if not _IN_FOLDERS:
            if status is not None and not stat.S_ISDIR(status.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            yield OpenedFolder(path, None)
            return
        handle = os.open(name, _FOLDER | _NO_FOLLOW, dir_fd=self._handle)
        try:
            yield OpenedFolder(path, handle)
        finally:
            os.close(handle)

    def _refuse_link(self, name: str) -> None:
        status = self.status(name)
        if status is not None and is_link(status):
            raise LinkRefused(str(self._path / name))

    def _name(self, name: str) -> str:
        return name if self._handle is not None else str(self._path / name)
