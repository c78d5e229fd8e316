"""Whether this thread is syncing a home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_syncing: Final[ContextVar[bool]] = ContextVar("syncing", default=False)


@contextmanager
def syncing() -> Iterator[None]:
    """Mark this thread as syncing: what it forgets is known to sync already."""
    token = _syncing.set(True)
    try:
        yield
    finally:
        _syncing.reset(token)


def is_syncing() -> bool:
    """Whether `syncing` is entered."""
    return _syncing.get()
