"""Homes that a measurement tells once and asks again: embedding is most of the time.

Without a folder a home lies in a temporary one. With one it stays, and the next run only asks.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from anaphora import Memory

__all__ = ["home_of", "load_reader", "tell_once"]

_TOLD: Final = ".told"


@contextmanager
def home_of(kept: Path | None, name: str) -> Iterator[Path]:
    """Where the home `name` lies. What a run that was broken off left of it is thrown away."""
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
            yield Path(folder) / name
        return
    home = kept / name
    if home.exists() and not _mark(home).exists():
        shutil.rmtree(home)
    kept.mkdir(parents=True, exist_ok=True)
    yield home


def tell_once(home: Path, tell: Callable[[], object]) -> None:
    """Call `tell`, which fills the home, unless the home was filled before."""
    if not _mark(home).exists():
        tell()
        _mark(home).touch()


def load_reader(memory: Memory, read: int) -> None:
    """Wait until the reader of a home can read, where any hit is to be read: recall never waits."""
    if read:
        memory.recall("?", read=read)
        memory.ready(600)


def _mark(home: Path) -> Path:
    return home.with_name(home.name + _TOLD)
