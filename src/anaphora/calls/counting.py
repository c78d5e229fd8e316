"""Counts the calls under way on a home, so that `close` can wait for them.

It never waits for the closing thread, nor for another thread that waits to close.
"""

from __future__ import annotations

import os
import threading
from collections import Counter

from anaphora.errors import Closed

CLOSING_PATIENCE = 180.0
"""Seconds that `close` waits for calls: longer than a deep question takes within its own budget."""

EXIT_PATIENCE = 5.0
"""Seconds that the end of a process waits for calls of daemon threads."""


class Calls:
    """The calls under way on one home: what runs within this. Safe to share between threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: Counter[int] = Counter()
        self._closers: set[int] = set()
        self._closing = False
        self._process = os.getpid()

    def __enter__(self) -> None:
        """A call of this thread begins. Raises `Closed` unless the thread is in one already."""
        thread = threading.get_ident()
        with self._changed:
            self._look_for_a_fork()
            if self._closing and thread not in self._running:
                raise Closed
            self._running[thread] += 1

    def __exit__(self, *_: object) -> None:
        """The call that this thread began last has ended."""
        thread = threading.get_ident()
        with self._changed:
            self._running[thread] -= 1
            if self._running[thread] <= 0:
                del self._running[thread]
                self._changed.notify_all()

    def finish(self, seconds: float | None) -> bool:
        """Let no other call begin, and wait for those of other threads; False at the time limit.

        None waits as long as it takes.
        """
        thread = threading.get_ident()
        wait = None if seconds is None else min(max(seconds, 0.0), threading.TIMEOUT_MAX)
        with self._changed:
            self._look_for_a_fork()
            self._closing = True
            self._closers.add(thread)
            # Another thread waiting here does not wait for the calls of this one either.
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._running.keys() <= self._closers, wait)
            finally:
                self._closers.discard(thread)

    def _look_for_a_fork(self) -> None:
        """After a fork, forget the threads of the parent process."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._running.clear()
            self._closers.clear()
