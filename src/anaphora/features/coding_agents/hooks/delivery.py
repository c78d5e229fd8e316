"""Prints what a session is given, and then notes it. Light: a hook imports this."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_WAIT: Final = 1.0
"""Seconds that a hook waits for another one to print: that takes a millisecond."""
_COARSE: Final = 20_000_000
"""Nanoseconds by which the time of a file may lie behind the clock."""


def give(output: str, path: str, content: str, since: int, known: int = 0) -> int:
    """Print an answer, and note what it gave in the state file of its session; "" for none. 0.

    Where another hook gave that session something after `since`, in nanoseconds, and not at
    `known`, the answer may hold it, too: nothing is printed, and that time comes back.
    """
    lock = _lock(os.path.dirname(path)) if path else -1  # noqa: PTH120
    try:
        try:
            changed_at = os.stat(path).st_mtime_ns if path else 0  # noqa: PTH116
        except OSError:
            changed_at = 0
        if changed_at >= since - _COARSE and changed_at != known:
            return changed_at
        if output:
            sys.stdout.write(output + "\n")
            sys.stdout.flush()
        note_given(path, content)
        return 0
    finally:
        if lock >= 0:
            os.close(lock)


def _lock(folder: str) -> int:
    """A file descriptor that no other hook has until it is closed; -1 if it cannot be had."""
    if sys.platform == "win32":
        return -1
    import fcntl

    ends = time.monotonic() + _WAIT
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return -1
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > ends:
                return lock
            time.sleep(0.001)
        else:
            return lock


def note_given(path: str, content: str) -> None:
    """Write the state file of a session; "" for none. If it cannot be, things are given twice."""
    if not path:
        return
    # Not by `pathlib` or `contextlib`: a hook would wait for their import.
    temporary = f"{path}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(content)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        return
