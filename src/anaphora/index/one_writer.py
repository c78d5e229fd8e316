"""One process at a time writes what several read: a lock that nobody waits for.

In: the folder of an index and the name of the lock in it. Out: whether this process may write now.
It never blocks: who does not get it leaves the work to whoever has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from anaphora.store.disk import make_directory


@contextmanager
def only_one(directory: Path, name: str) -> Iterator[bool]:
    """Hold the lock `name` while inside; False where another has it or nothing can be written."""
    try:
        make_directory(directory)
        lock = FileLock(directory / name, blocking=False, mode=0o600)
        lock.acquire()
    except (Timeout, OSError):
        yield False
        return
    try:
        yield True
    finally:
        # The folder may have been deleted meanwhile, and the lock with it.
        with suppress(OSError):
            lock.release()
