"""What every index needs to keep itself up: work behind the calls, and the right to write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import Context
from pathlib import Path

from anaphora.store.disk import make_directory


class Background:
    """The background of one owner. Safe to use from several threads; the work may not wait for it.

    `lock` is the owner's, where it begins works while holding one (a reentrant one): who waits then
    lets those finish first who may be about to begin one. `stopping` is for the work to look at: it
    is set while nothing more should be done.
    """

    def __init__(self, name: str, lock: AbstractContextManager[object] | None = None) -> None:
        self.stopping = threading.Event()
        self._name = name
        self._lock = threading.Lock() if lock is None else lock
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether a work is under way."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def begin(self, work: Callable[[], None]) -> bool:
        """Do `work` in a thread; False where one is under way or it is stopping."""
        with self._lock:
            if self.stopping.is_set() or self.running:
                return False
            # In a context of its own: the limit of the call that begins it is not the work's.
            thread = threading.Thread(
                target=Context().run, args=(work,), name=self._name, daemon=True
            )
            thread.start()
            # Not before: a thread that has not begun, or could not, must not be waited for.
            self._thread = thread
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the work to end; False when `timeout` seconds did not suffice."""
        with self._lock:
            # Whoever is beginning one holds this lock: it is not missed.
            thread = self._thread
        if thread is not None:
            thread.join(timeout)
        return thread is None or not thread.is_alive()

    def stop(self) -> None:
        """Begin nothing more, and wait for what is under way; clear `stopping` to go on."""
        self.stopping.set()
        self.wait()


@contextmanager
def try_lock(directory: Path, name: str) -> Iterator[bool]:
    """Hold the lock `name` while inside; False where another has it or nothing can be written."""
    # Most processes only read: importing it takes longer than their question to an index.
    from filelock import FileLock, Timeout

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


class IndexLost(Exception):
    """The file of the index is torn, corrupt or gone; what it held is made again from truth."""
