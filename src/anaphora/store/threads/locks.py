"""A lock per thread that all Anaphora processes of one directory respect.

In comes the key of a thread (`lock_key` of its file name), out comes a held lock. A lock file is
never deleted: whoever waits on it would be waiting on a file that nobody else can see. Its name
is a hash, so that it says nothing of a deleted conversation and never grows too long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anaphora.store.disk import make_directory

FOLDER = ".locks"

# Waiting for another writer's fsync takes milliseconds: filelock's own 50 would be most of it.
_POLL_SECONDS = 0.002


def lock_key(file_name: str) -> str:
    """What stands for a thread file in the names of its lock and its temporary files."""
    return hashlib.sha256(file_name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class ThreadLocks:
    """The locks of the threads in one directory."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Wait for the lock of the thread with this key and hold it. Raises OSError."""
        from filelock import FileLock

        make_directory(self._folder)
        with FileLock(self._folder / f"{key}.lock", poll_interval=_POLL_SECONDS, mode=0o600):
            yield

    @contextmanager
    def try_hold(self, key: str) -> Iterator[bool]:
        """Hold the lock of the thread with this key if nobody else does; say whether."""
        from filelock import FileLock, Timeout

        make_directory(self._folder)
        lock = FileLock(self._folder / f"{key}.lock", blocking=False, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
