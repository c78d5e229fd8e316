"""The worker threads behind the asynchronous facade, and the way back into the event loop.

It awaits calls that run in threads, and runs callbacks in the event loop in which they were passed.
It knows nothing of memories.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar

from anaphora.calls.limits import Cancellation
from anaphora.errors import Closed

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

# Calls mostly wait for disks and models, not for each other.
_THREADS = 8


@dataclass(slots=True)
class Workers:
    """The threads that all views on one home share, and their running calls."""

    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="anaphora")
    )
    running: set[Future[Any]] = field(default_factory=set)

    async def do(self, call: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """What `call` returns or raises, from a worker thread with the caller's context."""
        return await self.begin(partial(call, *args, **kwargs))

    def begin(self, call: Callable[[], ResultT]) -> asyncio.Future[ResultT]:
        """Begin a call in a worker thread, to be awaited. When that is cancelled, a call that has
        not begun is not made, and a recall ends at its next step; anything else is finished.
        """
        cancellation = Cancellation()

        def work() -> ResultT:
            with cancellation:
                return call()

        future = asyncio.wrap_future(self.submit(work))
        future.add_done_callback(lambda done: cancellation.cancel() if done.cancelled() else None)
        return future

    def submit(self, call: Callable[[], ResultT]) -> Future[ResultT]:
        """Begin a call in a worker thread."""
        try:
            future = self.pool.submit(copy_context().run, call)
        except RuntimeError:
            # The pool was shut down, or the interpreter is ending.
            raise Closed from None
        self.running.add(future)
        future.add_done_callback(self.running.discard)
        return future

    def finish(self, close: Callable[[float | None], None], seconds: float | None = None) -> None:
        """Wait for what is running, cancelled or not, then close: both within so many seconds."""
        begun = time.monotonic()
        wait(set(self.running), seconds)
        close(None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)))
        self.pool.shutdown(wait=False)


def in_loop(callback: Callable[P, object] | None) -> Callable[P, object] | None:
    """A callback that can be called from any thread and runs in the present event loop.

    What cannot be called comes back as it is: the call that it is passed to refuses it.
    """
    if not callable(callback):
        return callback
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        # Without a loop there is nowhere else to run.
        return callback

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(partial(callback, *args, **kwargs))

    return call
