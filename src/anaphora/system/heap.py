"""Returns freed memory to the system.

GNU's C library has a heap for each thread, and returns memory that was freed in the middle of one
only on request. With another library, nothing happens here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from anaphora.system.process_memory import resident_bytes

_HEAPS: Final = -8
"""The number of `M_ARENA_MAX`."""


def give_back_memory() -> None:
    """Let the C library give freed memory back to the system; takes some milliseconds."""
    import ctypes

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def share_heap() -> None:
    """Have all threads of this process share one heap; called before there are others.

    Otherwise a process with a thread for each request has eight heaps per core, with holes in each.
    More heaps would not help: nearly all threads wait for the interpreter's lock.
    """
    import ctypes

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(_HEAPS, 1)


class HeapWatch:
    """Gives memory back once the process has grown by `growth` bytes since it last did.

    It costs page faults afterwards, so while there is work it waits until `pause` seconds after the
    last time. `give_back` does it, and `size` is what the process takes, in bytes, None where the
    system has no figure. Not safe to share between threads.
    """

    def __init__(
        self,
        give_back: Callable[[], object] = give_back_memory,
        *,
        growth: int = 4 << 20,
        pause: float = 5.0,
        size: Callable[[], int | None] = lambda: resident_bytes(os.getpid()),
    ) -> None:
        self._give_back = give_back
        self._growth = growth
        self._pause = pause
        self._measure = size
        self._size = 0
        self._at = float("-inf")

    def look(self, now: float, *, busy: bool) -> bool:
        """Give memory back if it is time to; whether it was. `now` is in seconds."""
        if busy and now - self._at < self._pause:
            return False
        size = self._measure()
        if size is None or size <= self._size + self._growth:
            # If it became smaller by itself, growth is measured from the new size.
            self._size = min(self._size, size or 0)
            return False
        self._give_back()
        self._size = self._measure() or size
        self._at = now
        return True
