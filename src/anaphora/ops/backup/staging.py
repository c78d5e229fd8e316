"""Private folders and files for unfinished or temporary data.

`staged` is a locked folder beside a target: a killed process leaves such a folder and nothing else,
and the next call for the same target removes it. An existing target is never touched. `spooled` is
a file in the home for an upload or an export in transit, on Linux without ever having a name: a
killed process leaves nothing. Elsewhere it is in such a folder, which the next spool, the next
server, or `doctor --repair` removes.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from anaphora.errors import NotEmpty
from anaphora.store.disk import make_directory, sync, sync_directory, translate

LOCK = "sealing.lock"
"""The lock of a stage. A result to be moved out must be in a folder below: Windows moves no folder
with an open file in it."""

_MAX_NAME = 100
# The errors of file systems without links. FAT and exFAT on Windows: an invalid function, EINVAL.
_NO_LINKS = frozenset((
    errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL, errno.ENOSYS,
))  # fmt: skip


def free_path(path: str | os.PathLike[str]) -> Path:
    """The path, absolute. `NotEmpty` if it exists: nothing is overwritten."""
    target = Path(path).expanduser().absolute()
    if os.path.lexists(target):
        raise NotEmpty("write", target, "it already exists, and nothing is overwritten")
    return target


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A folder beside `target` for this process alone; it is removed afterwards.

    `StoreError` and its kinds if it cannot be written.
    """
    from filelock import FileLock

    try:
        make_directory(target.parent)
        make_room(target)
        stage = target.with_name(_prefix(target) + secrets.token_hex(6))
        stage.mkdir(mode=0o700)
    except OSError as error:
        raise translate(error, "write", target) from error
    lock = FileLock(stage / LOCK, mode=0o600)
    try:
        lock.acquire()
        yield stage
    except OSError as error:
        raise translate(error, "write", target) from error
    finally:
        lock.release()
        # The result was moved out before.
        shutil.rmtree(stage, ignore_errors=True)


def make_room(target: Path) -> int:
    """Remove the stages of interrupted calls for `target`; returns how many there were."""
    pattern = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{12}\Z")
    with suppress(FileNotFoundError):
        stale_folders = [folder for folder in target.parent.iterdir() if pattern.match(folder.name)]
        return sum(_remove_abandoned(folder) for folder in stale_folders)
    return 0


def put_file(source: Path, target: Path) -> None:
    """Give a finished file its name, unless that exists by now. Raises OSError."""
    sync_file(source)
    try:
        # Unlike a rename, a link never replaces what another process put there meanwhile.
        os.link(source, target)
    except FileExistsError as error:
        reason = "it already exists, and nothing is overwritten"
        raise NotEmpty("write", target, reason) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        free_path(target)
        source.rename(target)
    try:
        sync_directory(target.parent)
    except OSError:
        # After the error the target must not exist, so that the next call is not refused.
        with suppress(OSError):
            target.unlink()
        raise


def open_new(path: Path) -> BinaryIO:
    """A new file for this user alone, open for writing."""
    return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))


def sync_file(path: Path) -> None:
    """Put a file's bytes on the disk."""
    # Windows syncs only files that are open for writing.
    handle = os.open(path, os.O_RDWR)
    try:
        sync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Make the names in a folder, and in its subfolders, durable."""
    for directory, _, _ in os.walk(folder, topdown=False):
        sync_directory(Path(directory))


def _prefix(target: Path) -> str:
    return f".{target.name[:_MAX_NAME]}.unfinished-"


def _remove_abandoned(stage: Path) -> bool:
    from filelock import FileLock, Timeout

    try:
        status = stage.lstat()
    except OSError:
        return False
    # In a shared folder others can create a stage, with links; only its owner can write in it.
    # Windows has no such numbers.
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    if not is_own or not stat.S_ISDIR(status.st_mode):
        return False
    if not (stage / LOCK).exists():
        # It may be about to be locked: only an empty folder can be removed.
        with suppress(OSError):
            stage.rmdir()
            return True
        return False
    lock = FileLock(stage / LOCK, blocking=False, mode=0o600)
    try:
        lock.acquire()
    except (Timeout, OSError):
        return False
    try:
        shutil.rmtree(stage, ignore_errors=True)
    finally:
        lock.release()
    return True


_NAME: Final = "upload"


@dataclass(frozen=True, slots=True)
class Spool:
    """An open file, and the path under which this process can open it once more."""

    file: BinaryIO
    path: Path


@contextmanager
def spooled(home: Path) -> Iterator[Spool]:
    """A new spool in a home; it is deleted afterwards. Raises `StoreError` and its kinds."""
    if hasattr(os, "O_TMPFILE"):
        try:
            make_directory(home)
            try:
                number = os.open(home, os.O_RDWR | os.O_TMPFILE, 0o600)
            except OSError:
                # Not every file system supports unnamed files: this one has a name while it is
                # empty.
                path = home / f".{_NAME}.{os.urandom(6).hex()}"
                number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                path.unlink()
        except OSError as error:
            raise translate(error, "write", home) from error
        with os.fdopen(number, "w+b") as file:
            yield Spool(file, Path(f"/proc/self/fd/{file.fileno()}"))
        return
    with staged(home / _NAME) as folder, open_new(folder / _NAME) as new_file:
        path = folder / _NAME
        new_file.close()
        with path.open("r+b") as file:
            yield Spool(file, path)


def sweep(home: Path) -> int:
    """Remove the spools of killed processes; returns how many there were."""
    return make_room(home / _NAME)
