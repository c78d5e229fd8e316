"""Private places for what is made before it stands whole, or only passes through.

`staged` is a locked folder beside a target: whoever is killed leaves such a folder and nothing
else, and the next one that makes something for the same target removes it. What already stands at
the target is never touched. `spooled` is a file in the home for an upload or an export on its way,
on Linux without ever having a name: whoever is killed leaves nothing. Elsewhere it lies in such a
folder, which the next spool, the next server, or `doctor --repair` removes.
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
"""The lock of a stage. What is moved out of it must lie in a folder below: Windows moves no folder
in which a file is open."""

_MAX_NAME = 100
# How file systems without links say so. FAT and exFAT on Windows: an invalid function, EINVAL.
_NO_LINKS = frozenset((
    errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL, errno.ENOSYS,
))  # fmt: skip


def free_path(path: str | os.PathLike[str]) -> Path:
    """The path, absolute. `NotEmpty` when something stands there: nothing is overwritten."""
    target = Path(path).expanduser().absolute()
    if os.path.lexists(target):
        raise NotEmpty("write", target, "it already exists, and nothing is overwritten")
    return target


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A folder beside `target` for this process alone; it is gone afterwards unless it was moved.

    `StoreError` and its kinds when the place cannot be written.
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
        # What was moved into its place is not here any more.
        shutil.rmtree(stage, ignore_errors=True)


def make_room(target: Path) -> int:
    """Remove what interrupted calls left beside `target`; how many folders that were."""
    pattern = re.compile(re.escape(_prefix(target)) + r"[0-9a-f]{12}\Z")
    with suppress(FileNotFoundError):
        stale = [place for place in target.parent.iterdir() if pattern.match(place.name)]
        return sum(_remove_abandoned(place) for place in stale)
    return 0


def put_file(source: Path, target: Path) -> None:
    """Give a finished file its name, unless something stands there by now. Raises OSError."""
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
        # Whoever is told that it failed must not find it there, nor be refused the next time.
        with suppress(OSError):
            target.unlink()
        raise


def open_new(path: Path) -> BinaryIO:
    """A new file for this user alone, open for writing."""
    return open(path, "xb", opener=_private)


def sync_file(path: Path) -> None:
    """Put a file's bytes on the disk."""
    # Windows syncs only what is open for writing.
    handle = os.open(path, os.O_RDWR)
    try:
        sync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Make the names in a folder, and in the folders of it, last."""
    for place, _, _ in os.walk(folder, topdown=False):
        sync_directory(Path(place))


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _prefix(target: Path) -> str:
    return f".{target.name[:_MAX_NAME]}.unfinished-"


def _is_ours(stage: Path) -> bool:
    """Whether this user made a stage. In a shared folder anybody can put one, with links in it."""
    try:
        found = stage.lstat()
    except OSError:
        return False
    # A folder of ours is nobody else's to write in. Windows knows no such numbers.
    ours = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return ours and stat.S_ISDIR(found.st_mode)


def _remove_abandoned(stage: Path) -> bool:
    from filelock import FileLock, Timeout

    if not _is_ours(stage):
        return False
    if not (stage / LOCK).exists():
        # Between making a folder and locking it there is a moment: only an empty one can go.
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
    """A new spool in a home; it is gone afterwards. Raises `StoreError` and its kinds."""
    if hasattr(os, "O_TMPFILE"):
        with _nameless(home) as file:
            yield Spool(file, Path(f"/proc/self/fd/{file.fileno()}"))
        return
    with staged(home / _NAME) as folder, open_new(folder / _NAME) as made:
        path = folder / _NAME
        made.close()
        with path.open("r+b") as file:
            yield Spool(file, path)


def sweep(home: Path) -> int:
    """Remove what a killed process left of its spools; how many that were."""
    return make_room(home / _NAME)


def _nameless(home: Path) -> BinaryIO:
    try:
        make_directory(home)
        try:
            number = os.open(home, os.O_RDWR | os.O_TMPFILE, 0o600)
        except OSError:
            # Not every file system knows files without a name: it has one while it is empty.
            path = home / f".{_NAME}.{os.urandom(6).hex()}"
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            path.unlink()
    except OSError as error:
        raise translate(error, "write", home) from error
    return os.fdopen(number, "w+b")
