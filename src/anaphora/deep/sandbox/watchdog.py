"""Kills the process of a session when its wall time is over, whatever it is doing.

In: a process id and seconds. Out: nothing but the kill, and `fired`. It holds on to the process
itself where the system can (Linux), so that a number used again never hits another process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Watchdog:
    """Over one process. `fired` is True once its time was over."""

    def __init__(self, process: int | None) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._handle: int | None = None
        self.fired = False
        if process is not None and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                # A kernel or a container may refuse: then the number has to do.
                self._handle = os.pidfd_open(process)

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Watch while the block runs."""
        timer = threading.Timer(seconds, self._fire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the process now."""
        with self._lock, suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif self._process is not None:
                os.kill(self._process, getattr(signal, "SIGKILL", signal.SIGTERM))

    def close(self) -> None:
        """Let go of the process. Nothing is killed after this."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
            self._handle = self._process = None

    def _fire(self) -> None:
        self.fired = True
        self.kill()
