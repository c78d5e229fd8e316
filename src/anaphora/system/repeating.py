"""A call that is made again and again, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from anaphora.errors import AnaphoraError, Closed, MirrorError, RemoteError
from anaphora.system.late_threads import begins

_LONGEST: Final = 300.0
_PATIENCE: Final = 10.0
_log = logging.getLogger("anaphora")


class RepeatedCall:
    """Makes a call every so many seconds until it is stopped, or until trying again will not help.

    After an error that may pass (a remote or a folder that is away) the call is made again later
    and later, up to every five minutes. Any other error of ours is logged and ends it.
    """

    def __init__(self, name: str, call: Callable[[], object], every: float) -> None:
        self._name = name
        self._stopped = f"{name} stopped: %s"
        self._call = call
        self._every = every
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in the background."""
        thread = threading.Thread(target=self._run, name=f"anaphora-{self._name}", daemon=True)
        if begins(thread):
            self._thread = thread

    def stop(self) -> None:
        """End, after a call that is under way."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        wait = self._every
        while True:
            try:
                self._call()
            except Closed:
                return
            except AnaphoraError as error:
                if not isinstance(error, RemoteError | MirrorError) or error.lasting:
                    _log.warning(self._stopped, error)
                    return
                wait = min(_LONGEST, max(wait, 1.0) * 2)
            except Exception as error:  # noqa: BLE001 - any error is logged
                # A thread that ends silently would look like one that has nothing to do.
                _log.exception(self._stopped, error)
                return
            else:
                wait = self._every
            if self._stop.wait(wait):
                return
