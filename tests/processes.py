"""The processes that a test's own process has begun, as the kernel lists them."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["children", "end"]


def children() -> set[int]:
    """The ids of all that live. A thread may end while its list is read: it has none then."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (task / "children").read_text("ascii").split()))
    return found


def end(processes: Iterable[int], seconds: float = 20.0) -> bool:
    """Whether all of these end, each within so many seconds of being waited for (Linux)."""
    return all(_ends(process, seconds) for process in processes)


def _ends(process: int, seconds: float) -> bool:
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        return bool(poll.poll(1000 * seconds))
    finally:
        os.close(watched)
