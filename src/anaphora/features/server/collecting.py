"""Short pauses of Python's garbage collector, for a long-running process.

A full collection visits every live object, indexes and libraries included, while every request
waits: 60 ms and more at 10,000 memories. Objects that survive one are excluded from the next ones.
Occasionally all are visited again, so that no garbage is kept for good.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

EVERY: Final = 600.0
"""Seconds after which all objects are visited again."""
_WHOLE: Final = 2


@contextmanager
def short_collections(clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Within the context, full collections exclude objects that have survived one."""
    begun = clock()

    def collected(phase: str, info: dict[str, Any]) -> None:
        nonlocal begun
        if phase != "stop" or info["generation"] != _WHOLE:
            return
        if clock() - begun < EVERY:
            gc.freeze()
        else:
            begun = clock()
            # The next collection visits all objects.
            gc.unfreeze()

    gc.callbacks.append(collected)
    try:
        yield
    finally:
        gc.callbacks.remove(collected)
        gc.unfreeze()
