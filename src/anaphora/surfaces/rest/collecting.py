"""Short pauses of Python's collector of garbage, for a process that answers for a long time.

A whole collection goes through everything that lives, indexes and libraries, while every request
waits: 60 ms and more at 10,000 memories. What has survived one is left out of the next ones. Now
and then all of it is gone through once more, so that nothing is kept for good.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

EVERY: Final = 600.0
"""Seconds after which all is gone through again."""
_WHOLE: Final = 2


@contextmanager
def short_collections(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """While inside, whole collections leave out what has survived one."""
    begun = clock()

    def collected(phase: str, told: dict[str, Any]) -> None:
        nonlocal begun
        if phase != "stop" or told["generation"] != _WHOLE:
            return
        if clock() - begun < EVERY:
            gc.freeze()
        else:
            begun = clock()
            # The next one goes through all of it.
            gc.unfreeze()

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
        gc.unfreeze()
