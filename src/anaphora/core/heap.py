"""What the process holds of memory that nobody uses any more."""

from __future__ import annotations

from contextlib import suppress


def give_back_memory() -> None:
    """Let the C library give freed memory back to the system; takes some milliseconds.

    What is read in large pieces, and freed, otherwise stays with the process for good. Only GNU's
    library has such a call; where there is none, nothing happens.
    """
    import ctypes

    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
