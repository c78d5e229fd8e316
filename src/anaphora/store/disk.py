"""Files that are there in whole or not at all, and stay there once a call has returned.

What goes wrong is an OSError here; `translate` says it in our own words.
"""

from __future__ import annotations

import ctypes
import errno
import io
import itertools
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import DiskFull, Locked, ReadOnly, StoreError
from anaphora.system.lock_holders import lock_holder
from anaphora.system.shortages import name_shortage

Identity = tuple[int, int, int, int]
"""Inode, size, and times of modification and change in nanoseconds: which bytes a file has."""

NO_FILE: Identity = (0, 0, 0, 0)
"""The identity of a file that is not there."""


class FileChanged(OSError):
    """Another program put other bytes in the place of a file while it was being replaced."""


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_READ_ONLY = frozenset((errno.EROFS, errno.EACCES, errno.EPERM))
# EFBIG is how a limit on file sizes says that no room is left.
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_CHUNK = 1 << 20
MOVES_OPEN_FILES = os.name != "nt"
"""Whether a file that is open can be renamed, and another be put in its place."""
# macOS leaves bytes in the drive's own memory after an fsync; this call waits for the drive, too.
_FULL_SYNC: int | None = None
if sys.platform != "win32":
    import fcntl

    _FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC = frozenset((errno.EINVAL, errno.ENOTSUP, errno.ENOTTY))
# AT_FDCWD; RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS are the same number.
_HERE, _SWAP_NAMES = -100, 2
_NO_EXCHANGE = frozenset((errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV))
_TEMPORARY = re.compile(r"\.([0-9a-f]{24})\.[0-9]+\.[0-9a-f]+\.tmp\Z")


def translate(error: OSError, operation: str, path: Path | str) -> StoreError:
    """The error of an operating system as one of ours."""
    if (lock := getattr(error, "lock_file", None)) is not None:
        # filelock's own error: its time is over.
        return Locked(operation, path, lock_holder(Path(lock)))
    kind: type[StoreError] = StoreError
    if error.errno in _READ_ONLY:
        kind = ReadOnly
    elif error.errno in _FULL:
        kind = DiskFull
    return kind(operation, path, name_shortage(error) or error.strerror or str(error))


def identity_of(status: os.stat_result) -> Identity:
    """Which bytes the file of this status has."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def identity_of_entry(entry: os.DirEntry[str]) -> Identity:
    """Which bytes the file of this entry has. Raises OSError.

    Windows gives entries no number of their file, and may not know their present size: there the
    file is looked at itself.
    """
    status = entry.stat()
    return identity_of(status if status.st_ino else os.stat(entry.path))  # noqa: PTH116


def identity_at(path: Path) -> Identity:
    """Which bytes the file at `path` has; `NO_FILE` where there is none. Raises OSError."""
    try:
        return identity_of(path.stat())
    except FileNotFoundError:
        return NO_FILE


def sync(descriptor: int) -> None:
    """Wait until what was written to an open file would survive a loss of power. Raises OSError."""
    if sys.platform != "win32" and _FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        except OSError as error:
            # File systems of networks and of other makers may lack it.
            if error.errno not in _NO_FULL_SYNC:
                raise
        else:
            return
    os.fsync(descriptor)


def sync_directory(directory: Path) -> None:
    """Make names that came or went in this directory last. Windows has no such call."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        sync(handle)
    finally:
        os.close(handle)


def refuse_irregular(status: os.stat_result) -> None:
    """Raise OSError for what is no regular file: its reader might wait, or read, for ever."""
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_a, name in _KINDS if is_a(status.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file")


def open_regular(path: Path) -> BinaryIO:
    """Open a file of others for reading; links are followed. OSError for what is no regular file.

    One that says it is empty is read as empty: so do those of /proc, some of which never end.
    """
    # Opening some devices does something; the second look is at what was opened.
    refuse_irregular(path.stat())
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        status = os.fstat(file.fileno())
        refuse_irregular(status)
    except OSError:
        file.close()
        raise
    if status.st_size:
        return file
    file.close()
    return io.BytesIO()


def make_directory(directory: Path) -> None:
    """Make a directory for this user alone, and the ones above it, so that they last."""
    if directory.is_dir():
        return
    missing = directory
    missing_folders: list[Path] = []
    while not missing.exists():
        missing_folders.append(missing)
        missing = missing.parent
    for folder in reversed(missing_folders):
        # Another process may make it at the same moment.
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        sync_directory(folder.parent)
    if not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))


def replace_file(
    path: Path,
    key: str,
    old: Identity,
    content: bytes | Callable[[BinaryIO], object],
    *,
    prepare: Callable[[Path], object] | None = None,
) -> Identity:
    """Put `content`, or what it writes, in the place of `path`; the identity of the new file.

    The file that stands there must still be `old`, else FileChanged is raised. It stands
    untouched until the new one is on the disk in whole. `key` goes into the name of the temporary
    file, see `temporary_key`; `prepare` is called with that file once it is whole. Mode and owner
    of an older file are kept.
    """
    # A process identifier alone comes back: in a container it is always the same.
    temporary = path.with_name(f".{key}.{os.getpid()}.{os.urandom(6).hex()}.tmp")
    with _written(temporary, path, content) as target:
        if not MOVES_OPEN_FILES:
            target.close()
        _refuse_other(path, old)
        if prepare is not None:
            prepare(temporary)
        _rename(temporary, path)
        # A rename changes st_ctime; asking the open file cannot meet another program's file.
        identity = identity_of(path.stat() if target.closed else os.fstat(target.fileno()))
    sync_directory(path.parent)
    return identity


def exchange_file(
    path: Path,
    swap: Path,
    key: str,
    old: Identity,
    content: bytes | Callable[[BinaryIO], object],
    *,
    prepare: Callable[[Path], object],
) -> Identity:
    """As `replace_file`, but a file that came to `path` at the last moment is not overwritten.

    The new file is written at `swap`, a free name on the same file system, and the two names are
    exchanged.
    When another file than `old` was there, it lies at `swap` then. NO_FILE is returned in that
    case, and where another program has written the file since. Systems that cannot exchange names
    do what `replace_file` does.
    """
    exchange = _exchange_call()
    if exchange is None:
        return replace_file(path, key, old, content, prepare=prepare)
    with _written(swap, path, content) as target:
        _refuse_other(path, old)
        prepare(swap)
        inode = os.fstat(target.fileno()).st_ino
    if old == NO_FILE:
        _place_new(swap, path)
    else:
        try:
            if not exchange(swap, path):
                _rename(swap, path)
        except FileChanged:
            swap.unlink()
            raise
    sync_directory(path.parent)
    # Changing names changes st_ctime: what a file holds shows in the other three.
    if os.path.lexists(swap) and identity_at(swap)[:3] != old[:3]:
        return NO_FILE
    swap.unlink(missing_ok=True)
    identity = identity_at(path)
    return identity if identity[0] == inode else NO_FILE


@contextmanager
def _written(
    temporary: Path, path: Path, content: bytes | Callable[[BinaryIO], object]
) -> Iterator[BinaryIO]:
    """A new file with this content, on the disk in whole; it is removed if the body fails."""
    # For this user alone from the first moment on.
    with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as target:
        try:
            _keep_mode(path, target.fileno())
            if isinstance(content, bytes):
                target.write(content)
            else:
                content(target)
            target.flush()
            sync(target.fileno())
            yield target
        except BaseException:
            # Closing writes what is still in the buffer, which fails again on a full disk.
            with suppress(OSError):
                target.close()
            temporary.unlink(missing_ok=True)
            raise


def _refuse_other(path: Path, old: Identity) -> None:
    if identity_at(path) != old:
        raise FileChanged(errno.EAGAIN, "another program wrote the file", str(path))


def _place_new(temporary: Path, path: Path) -> None:
    """Give a new file its name, unless another program has just made one of that name."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        temporary.unlink()
        raise FileChanged(errno.EAGAIN, "another program wrote the file", str(path)) from None
    except OSError:
        _rename(temporary, path)
    else:
        temporary.unlink()


@cache
def _exchange_call() -> Callable[[Path, Path], bool] | None:
    """The system's call that exchanges two names in one step; None where there is none."""
    names = {"linux": "renameat2", "darwin": "renamex_np"}
    name = names.get(sys.platform)
    call = None if name is None else getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return None

    def exchange(one: Path, other: Path) -> bool:
        """Whether the names were exchanged; False where this file system cannot."""
        paths = (os.fsencode(one), os.fsencode(other))
        if sys.platform == "darwin":
            error_code = call(*paths, _SWAP_NAMES)
        else:
            error_code = call(_HERE, paths[0], _HERE, paths[1], _SWAP_NAMES)
        if not error_code:
            return True
        code = ctypes.get_errno()
        if code in _NO_EXCHANGE:
            return False
        if code == errno.ENOENT:
            raise FileChanged(errno.EAGAIN, "another program removed the file", str(other))
        raise OSError(code, os.strerror(code), str(other))

    return exchange


def temporary_key(name: str) -> str | None:
    """The key in the name of a temporary file of `replace_file`; None for any other name."""
    match = _TEMPORARY.match(name)
    return match[1] if match else None


def copy_start(source: int, target: BinaryIO, count: int) -> None:
    """Copy the first `count` bytes of an open file, inside the kernel where that is possible."""
    target.flush()
    copied_count = _copy_in_kernel(source, target.fileno(), count) if sys.platform == "linux" else 0
    os.lseek(source, copied_count, os.SEEK_SET)
    while copied_count < count:
        chunk = os.read(source, min(_CHUNK, count - copied_count))
        if not chunk:
            raise OSError(errno.EIO, "the file shrank while it was copied")
        target.write(chunk)
        copied_count += len(chunk)


def set_aside(path: Path, folder: Path) -> Path:
    """Move a file into `folder` under the first free number; what lies there is never replaced."""
    make_directory(folder)
    target = next(
        target
        for n in itertools.count(1)
        if not os.path.lexists(target := folder / f"{path.name}.{n}")
    )
    path.rename(target)
    sync_directory(folder)
    sync_directory(path.parent)
    return target


def _copy_in_kernel(source: int, target: int, count: int) -> int:
    """How many of the bytes the kernel copied; fewer where the file system has no such call."""
    if sys.platform != "linux":
        return 0
    copied_count = 0
    while copied_count < count:
        try:
            chunk_size = os.copy_file_range(source, target, count - copied_count, copied_count)
        except OSError as error:
            if error.errno in _FULL:
                raise
            return copied_count
        if not chunk_size:
            return copied_count
        copied_count += chunk_size
    return copied_count


def _keep_mode(path: Path, target: int) -> None:
    if sys.platform == "win32":
        return
    try:
        old_status = path.stat()
    except FileNotFoundError:
        return
    os.fchmod(target, old_status.st_mode & 0o777)
    if (old_status.st_uid, old_status.st_gid) != (os.geteuid(), os.getegid()):
        # Only root may give a file away; for others the mode has to do.
        with suppress(PermissionError):
            os.fchown(target, old_status.st_uid, old_status.st_gid)


def _rename(temporary: Path, path: Path) -> None:
    if MOVES_OPEN_FILES:
        temporary.replace(path)
        return
    # Windows refuses while another process has the old file open, which readers do for moments.
    for _ in range(100):
        with suppress(PermissionError):
            temporary.replace(path)
            return
        time.sleep(0.01)
    temporary.replace(path)
