"""Shared by all indexes: background work, and the lock that a writer needs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import Context
from pathlib import Path

from anaphora.store.disk import make_directory


class Background:
    """A background thread for one owner. Thread-safe.

    `lock` is the owner's (reentrant) lock if it begins work while holding it: `wait` then also
    covers work that is just being begun. The work checks `stopping`, which is set while it should
    end early.
    """

    def __init__(self, name: str, lock: AbstractContextManager[object] | None = None) -> None:
        self.stopping = threading.Event()
        self._name = name
        self._lock = threading.Lock() if lock is None else lock
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """Whether work is under way."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def begin(self, work: Callable[[], None]) -> bool:
        """Run `work` in a thread; False if a thread is already running or it is stopping."""
        with self._lock:
            if self.stopping.is_set() or self.running:
                return False
            # In its own context: the time limit of the call that begins it must not apply.
            thread = threading.Thread(
                target=Context().run, args=(work,), name=self._name, daemon=True
            )
            thread.start()
            # Only now: a thread that failed to start must not be joined.
            self._thread = thread
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the work to end; False if it takes longer than `timeout` seconds.

        The work does not wait for itself: a listener that it calls may close all.
        """
        with self._lock:
            # `begin` holds this lock, so a thread that is being started is not missed.
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    def stop(self) -> None:
        """Begin no more work, and wait for the running one; clear `stopping` to go on."""
        self.stopping.set()
        self.wait()


@contextmanager
def try_lock(directory: Path, name: str) -> Iterator[bool]:
    """Hold the lock `name` while inside; False if another process has it or the disk refuses."""
    # Imported late: most processes only read, and the import takes longer than a query.
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
        # The folder may have been deleted meanwhile, together with the lock.
        with suppress(OSError):
            lock.release()


class IndexLost(Exception):
    """The file of the index is torn, corrupt or gone; it is rebuilt from the database."""


class IndexBusy(Exception):
    """The file cannot be written now: another process is writing, or the disk refuses."""
