"""Threads that may not begin: from Python 3.12 on none does once the main thread has ended."""

from __future__ import annotations

import threading


def begins(thread: threading.Thread) -> bool:
    """Start a thread; False where none begins any more, and its work is the caller's to do."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True
