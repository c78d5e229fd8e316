"""Progress of long work: two forms of callback, and conversions between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with (label, done, total): of a call that does several things, or goes through files."""

ProgressCount: TypeAlias = Callable[[int, int], None]
"""Called with (done, total): of one thing, which the caller knows."""


def no_progress(_label: str, _done: int, _total: int) -> None:
    """Ignore progress."""


def labelled(progress: Progress | None, label: str) -> ProgressCount | None:
    """A callback (done, total) that tells `progress` under one label."""
    if progress is None:
        return None
    return lambda done, total: progress(label, done, total)


def prefixed(progress: Progress | None, prefix: str) -> Progress | None:
    """A callback that puts `prefix` before every label."""
    if progress is None:
        return None
    return lambda label, done, total: progress(f"{prefix}: {label}", done, total)
