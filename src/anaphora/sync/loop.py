"""Syncing again and again, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from anaphora.core.late_threads import begins
from anaphora.errors import AnaphoraError, Closed, RemoteError
from anaphora.values.sync import SyncReport

EVERY: Final = 10.0
"""Seconds between two exchanges."""
_LONGEST: Final = 300.0
_PATIENCE: Final = 10.0
_log = logging.getLogger("anaphora")


class SyncLoop:
    """Exchanges every so many seconds until it is stopped, or until trying again will not help.

    A remote that cannot be reached is asked again later and later, up to every five minutes. What
    waits is in the database: nothing is held in memory.
    """

    def __init__(self, now: Callable[[], SyncReport], every: float) -> None:
        self._now = now
        self._every = every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in the background."""
        thread = threading.Thread(target=self._run, name="anaphora-sync", daemon=True)
        if begins(thread):
            self._thread = thread

    def stop(self) -> None:
        """End, after an exchange that is under way."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        wait = self._every
        while True:
            try:
                self._now()
            except RemoteError as error:
                if error.lasting:
                    _log.warning("sync stopped: %s", error)
                    return
                wait = min(_LONGEST, max(wait, 1.0) * 2)
            except Closed:
                return
            except AnaphoraError as error:
                # `sync status` and `doctor` say so, too.
                _log.warning("sync stopped: %s", error)
                return
            else:
                wait = self._every
            if self._stop.wait(wait):
                return
