"""Whether this thread brings a home in line with others just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_syncing: Final[ContextVar[bool]] = ContextVar("syncing", default=False)


@contextmanager
def syncing() -> Iterator[None]:
    """While it does: what is forgotten then is known already."""
    token = _syncing.set(True)
    try:
        yield
    finally:
        _syncing.reset(token)


def is_syncing() -> bool:
    """Whether `syncing` is entered."""
    return _syncing.get()
