"""Time limits and cancellation of recalls.

A facade opens `limited` around a recall. Long work inside checks whether to go on:
`check_cancelled` between two steps, `time_left` before a step, `within_limit` around a call that
cannot be interrupted. Writes are never limited, so that none is left half-done.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from anaphora.errors import Cancelled, InvalidInput, TimedOut
from anaphora.system.late_threads import begins
from anaphora.system.permits import current_permits, defer_for, lent

if TYPE_CHECKING:
    from threading import RLock

ResultT = TypeVar("ResultT")

SLICE: Final = 0.02
"""Seconds between checks for cancellation during a wait."""

RESERVE: Final = 0.1
"""Seconds reserved for the search by words, which answers if vectors come too late."""

_MOST_IDLE: Final = 16
"""Idle threads that wait for the next limited call."""


class Cancellation:
    """Ends the recalls that are made inside `with cancellation:` once `cancel()` is called.

    `cancel()` may come from any thread, and from a signal handler. A recall that is under way ends
    in `Cancelled` at its next step, one that begins afterwards at once. What writes is never cut
    short. Safe to share between threads, and to enter more than once.
    """

    def __init__(self) -> None:
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """End the recalls under way, and those to come. Safe to call twice."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel()` was called."""
        return self._cancelled.is_set()

    def __enter__(self) -> Cancellation:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])


_entered: ContextVar[tuple[Cancellation, ...]] = ContextVar("anaphora_cancellations", default=())


@dataclass(frozen=True, slots=True)
class _Limit:
    """The end of a recall (on the monotonic clock, None: never), its time limit, and the
    cancellations that can end it before."""

    ends: float | None
    seconds: float
    cancellations: tuple[Cancellation, ...]

    def check(self) -> None:
        if any(cancellation.cancelled for cancellation in self.cancellations):
            raise Cancelled


_limit: ContextVar[_Limit | None] = ContextVar("anaphora_limit", default=None)


@contextmanager
def limited(timeout: float | None) -> Iterator[None]:
    """Limit the time of the code inside (None: no limit), and let it be cancelled.

    Raises `InvalidInput` for a bad number, `Cancelled` if it was cancelled before.
    """
    if timeout is not None and not (math.isfinite(timeout) and timeout >= 0):
        raise InvalidInput("timeout", timeout, "expected seconds, 0 or more")
    cancellations = _entered.get()
    if timeout is None and not cancellations:
        yield
        return
    ends = None if timeout is None else time.monotonic() + timeout
    limit = _Limit(ends, timeout or 0.0, cancellations)
    limit.check()
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def is_limited() -> bool:
    """Whether this call has a time limit, or can be cancelled."""
    return _limit.get() is not None


def check_cancelled() -> None:
    """Raise `Cancelled` if this call was cancelled."""
    limit = _limit.get()
    if limit is not None:
        limit.check()


def time_left() -> float | None:
    """Seconds that this call may still wait for something, 0 or more; None if it has no limit.

    A reserve is subtracted: results found by words still have to be ranked.
    """
    limit = _limit.get()
    if limit is None or limit.ends is None:
        return None
    reserve = min(RESERVE, limit.seconds / 4)
    return max(0.0, limit.ends - reserve - time.monotonic())


def part_of_time(most: float) -> float:
    """Seconds that one of several steps may wait: at most `most`, and half of the time left."""
    remaining = time_left()
    return most if remaining is None else min(most, remaining / 2)


def time_is_up() -> bool:
    """Whether no more long work should be begun. Raises `Cancelled`."""
    check_cancelled()
    return time_left() == 0.0


def wait_within(wait: Callable[[float | None], bool], timeout: float | None = None) -> bool:
    """Call `wait(seconds)` for at most `timeout` seconds, and within the limit of this call.

    Returns its result. Raises `Cancelled`.
    """
    limit, remaining = _limit.get(), time_left()
    if remaining is not None:
        timeout = remaining if timeout is None else min(timeout, remaining)
    if limit is None or not limit.cancellations:
        return wait(timeout)
    ends = None if timeout is None else time.monotonic() + timeout
    while True:
        limit.check()
        remaining = math.inf if ends is None else max(0.0, ends - time.monotonic())
        if wait(min(SLICE, remaining)):
            return True
        if remaining <= SLICE:
            return False


GRACE: Final = 0.2
"""Seconds that a call still waits for a lock when its time is over: most are held for less."""


def acquire_within(lock: RLock) -> None:
    """Acquire a lock that other threads may hold for long. Raises `TimedOut` and `Cancelled`."""
    limit = _limit.get()
    if limit is None:
        lock.acquire()
        return

    def acquire(seconds: float | None) -> bool:
        return lock.acquire(timeout=-1 if seconds is None else max(seconds, GRACE))

    if not wait_within(acquire):
        raise TimedOut(limit.seconds)


def within_limit(call: Callable[[], ResultT]) -> ResultT:
    """The result of `call`. If the current call is limited, it runs in a separate thread, and is
    abandoned when the time is over (`TimedOut`) or the call was cancelled (`Cancelled`).

    An abandoned call runs to its end, and its result is dropped: it must have no side effects that
    matter.
    """
    limit = _limit.get()
    if limit is None:
        return call()
    if time_is_up():
        raise TimedOut(limit.seconds)
    outcome: list[tuple[ResultT | None, BaseException | None]] = []
    permits, context = current_permits(), copy_context()

    def run() -> None:
        defer_for(permits)
        try:
            outcome.append((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcome.append((None, error))
        finally:
            defer_for(None)

    end_event = _LimitedThread.start_call(run)
    if end_event is None:
        return call()
    _running.add(end_event)
    with lent():
        is_done = wait_within(end_event.wait)
    if not is_done:
        raise TimedOut(limit.seconds)
    _running.discard(end_event)
    return_value, error = outcome[0]
    if error is not None:
        raise error
    return return_value  # type: ignore[return-value]


class _LimitedThread(threading.Thread):
    """A thread that runs one call after another: beginning one takes longer than many a call."""

    _idle: ClassVar[list[_LimitedThread]] = []

    def __init__(self) -> None:
        super().__init__(name="anaphora-limited", daemon=True)
        self._calls: SimpleQueue[tuple[Callable[[], None], threading.Event]] = SimpleQueue()

    @classmethod
    def start_call(cls, call: Callable[[], None]) -> threading.Event | None:
        """Run `call`, which raises nothing, and set the event; None where no thread begins."""
        thread: _LimitedThread | None = None
        with suppress(IndexError):
            thread = cls._idle.pop()
        if thread is None:
            thread = cls()
            if not begins(thread):
                return None
        end_event = threading.Event()
        thread._calls.put((call, end_event))
        return end_event

    def run(self) -> None:
        """Run calls; with enough idle threads, end."""
        while True:
            call, end_event = self._calls.get()
            call()
            is_kept = len(self._idle) < _MOST_IDLE
            if is_kept:
                self._idle.append(self)
            end_event.set()
            if not is_kept:
                return


# In a forked child none of them runs.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LimitedThread._idle.clear)

_running: set[threading.Event] = set()
"""Ends of calls begun under a limit; `wait_for_given_up` removes those of abandoned ones."""


def wait_for_given_up(seconds: float) -> None:
    """Wait for abandoned calls: a process must not exit inside a model library."""
    ends = time.monotonic() + seconds
    for end_event in list(_running):
        if end_event.wait(max(0.0, ends - time.monotonic())):
            _running.discard(end_event)
