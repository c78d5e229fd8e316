"""Permits to compute: of many threads that answer few compute at a time, the others wait in order.

Python runs one thread at a time. Sixteen that take it from each other every few milliseconds end
all at about the same late time, with cold caches; one after the other most end sooner and none
later. Who waits for something else, such as a model, lends its permit. It is an order, and no lock:
where nobody gives one back for a while, the next one goes ahead without.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE: Final = 0.05
"""Seconds without any permit given out, after which the next one goes ahead without."""

FEW: Final = 2
"""Threads that may wait to compute while work that can wait goes ahead."""

_here = threading.local()


class Permits:
    """So many `count` permits, given out in the order in which they are asked for."""

    def __init__(self, count: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = count
        self._clock = clock
        self._given = clock()
        self._queue: deque[threading.Event] = deque()
        self._lock = threading.Lock()
        self._fewer = threading.Condition(self._lock)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A permit while inside, for this thread."""
        self._take()
        _here.permits = self
        try:
            yield
        finally:
            _here.permits = None
            self._give_back()

    def _take(self) -> None:
        with self._lock:
            if self._free > 0:
                self._give_out()
                return
            grant_event = threading.Event()
            self._queue.append(grant_event)
        while not grant_event.wait(PATIENCE):
            with self._lock:
                if grant_event in self._queue and self._clock() - self._given >= PATIENCE:
                    self._queue.remove(grant_event)
                    self._give_out()
                    return

    def _give_back(self) -> None:
        with self._lock:
            self._free += 1
            if self._queue and self._free > 0:
                self._give_out()
                self._queue.popleft().set()
            self._fewer.notify_all()

    def _give_out(self) -> None:
        self._free -= 1
        self._given = self._clock()


@contextmanager
def lent() -> Iterator[None]:
    """While this thread waits inside, another one has its permit. Nothing where it has none."""
    permits = current_permits()
    if permits is None:
        yield
        return
    permits._give_back()
    try:
        yield
    finally:
        permits._take()


def defer(enough: Callable[[], bool]) -> None:
    """Wait while others have much to compute, for work that grows cheaper as more of it gathers.

    Until there is `enough` of it, and not for long. Nothing for a thread that has no permit.
    """
    permits = current_permits() or getattr(_here, "deferring_to", None)
    if permits is not None:
        with permits._fewer:
            permits._fewer.wait_for(lambda: len(permits._queue) <= FEW or enough(), PATIENCE)


def current_permits() -> Permits | None:
    """Those of which this thread holds one."""
    permits: Permits | None = getattr(_here, "permits", None)
    return permits


def defer_for(permits: Permits | None) -> None:
    """Let this thread, which works for one that has lent its permit, defer as that one would."""
    _here.deferring_to = permits
