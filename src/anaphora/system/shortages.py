"""What a process can run out of, open files and memory, in words that say what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from anaphora.errors import StoreError

_OPEN_FILES: Final = (
    "too many files are open: close some, or raise the limit (`ulimit -n`), then try again"
)
_MEMORY: Final = "there is not enough memory: free some, or raise the limit, then try again"
_OF_DATABASES: Final = 10
"""Files that SQLite opens for two databases (for a copy): each with its log and journal, their
index, and its folder."""
_REASONS: Final = {
    errno.EMFILE: _OPEN_FILES,
    errno.ENFILE: _OPEN_FILES,
    errno.ENOMEM: _MEMORY,
}


def name_shortage(error: BaseException) -> str:
    """What has run out according to an error, and what to do; "" if nothing has."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError):
        return _REASONS.get(error.errno or 0, "")
    if isinstance(error, ImportError):
        # A library that cannot be loaded for this says so in words only.
        message = str(error)
        reasons = (reason for code, reason in _REASONS.items() if os.strerror(code) in message)
        return next(reasons, "")
    return ""


def find_shortage() -> str:
    """The same of files right now: SQLite only says that it could not open one."""
    try:
        with ExitStack() as opened:
            for _ in range(_OF_DATABASES):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return name_shortage(error)
    return ""


@contextmanager
def refused_for_shortages(operation: str, place: Path | str) -> Iterator[None]:
    """Raise `StoreError` for `operation` on `place` where the process ran out of something."""
    try:
        yield
    except (OSError, MemoryError, ImportError) as error:
        reason = name_shortage(error)
        if not reason:
            raise
        raise StoreError(operation, place, reason) from error
