"""A server's session: one memory opened in the background, used by all calls, closed in time.

The memory stays untouched until `begin` or the first call, so that a handshake never waits for a
model or a database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar

from anaphora.api.workers import Workers
from anaphora.calls.caller import CallOrigin, called_from
from anaphora.errors import AnaphoraError, Closed
from anaphora.system.environment import environment
from anaphora.system.incidents import report
from anaphora.values.conversations import READ_AWAITED

if TYPE_CHECKING:
    from anaphora.api.memory import Memory


ResultT = TypeVar("ResultT")

HEAD_START: Final = 0.2
"""Seconds before opening starts in the background: clients list the tools right after the
handshake, and imports in another thread would delay that answer."""

GRACE: Final = 1.0
"""Seconds for running calls after the client disconnects. Clients kill a server after two."""

CLOSING: Final = 0.8
"""Seconds for closing after that. Acknowledged writes are on the disk by then."""

_LONG_THREADS: Final = 4
_WARMING: Final = "what is remembered"


class ServerSession:
    """One memory, opened once, shared by all calls. `clock` returns aware times."""

    def __init__(
        self, open_memory: Callable[[], Memory], *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.clock = clock or (lambda: datetime.now(UTC))
        self.quick = Workers()
        # A deep question may take minutes and must not block the threads of short calls.
        self.long = Workers(ThreadPoolExecutor(_LONG_THREADS, thread_name_prefix="anaphora-long"))
        self._open_memory = open_memory
        self._memory: Memory | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._warming: threading.Thread | None = None

    def memory(self) -> Memory:
        """The memory, opened by the first caller. Raises what opening raises, and `Closed`.

        After a failure the next call tries again, since a key may have been provided meanwhile.
        """
        with self._lock:
            if self._ended.is_set():
                raise Closed
            if self._memory is None:
                self._memory = self._open_memory()
            return self._memory

    def begin(self) -> None:
        """Start opening the memory and loading the model, in the background, once."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._warm, name="anaphora-warm", daemon=True)
            self._warming.start()

    def submit(self, work: Callable[[], ResultT]) -> Future[ResultT]:
        """Run work in the background and return its `Future`."""
        return self.long.submit(work)

    def run_later(self, work: Callable[[], object]) -> None:
        """Run work after the answer; its unexpected errors are logged."""

        def run() -> None:
            try:
                work()
            except AnaphoraError:
                raise
            except BaseException as error:
                report(environment(), error, surface="mcp", operation="background")
                raise

        self.long.submit(run)

    def finish(self) -> bool:
        """Wait up to `GRACE` seconds for running calls, and close; False if something still runs.

        Then nothing is closed under it: the caller must end the process without waiting for
        threads.
        """
        self._ended.set()
        is_idle = not wait({*self.quick.running, *self.long.running}, timeout=GRACE).not_done
        if self._warming is not None:
            self._warming.join(GRACE)
            is_idle = is_idle and not self._warming.is_alive()
        if is_idle:
            closing = threading.Thread(target=self._close, name="anaphora-closing", daemon=True)
            closing.start()
            closing.join(CLOSING)
            is_idle = not closing.is_alive()
        for workers in (self.quick, self.long):
            workers.pool.shutdown(wait=False, cancel_futures=True)
        return is_idle

    def _close(self) -> None:
        with self._lock:
            memory, self._memory = self._memory, None
        if memory is not None:
            # Running calls had their time in `finish`.
            memory.close(0)

    def _warm(self) -> None:
        if self._ended.wait(HEAD_START):
            return
        try:
            # One question per index loads what the first real one would wait for.
            memory = self.memory()
            with called_from(CallOrigin("mcp")):
                memory.recall(_WARMING, top_k=1, read=READ_AWAITED)
                if self._ended.is_set():
                    return
                memory.recall_conversation(None, _WARMING, top_k=1, read=READ_AWAITED)
            if self._ended.is_set():
                return
            memory.sync.start()
            memory.mirror.start()
        except AnaphoraError:
            # The first call meets the same error and can report it.
            return
        except BaseException as error:  # noqa: BLE001 - a thread has no caller
            report(environment(), error, surface="mcp", operation="warming up")
