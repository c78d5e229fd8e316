"""The frozen values of a mirror: what comparing a namespace with its folder did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

__all__ = ["MirrorConflict", "MirrorProblem", "MirrorReport", "MirrorStatus"]

MIRROR_EVERY: Final = 5.0
"""Seconds between two comparisons, unless told."""


@dataclass(frozen=True, slots=True)
class MirrorConflict:
    """A page that was changed in the home and in its file: `kept` says which text is current.

    The others are in the history of the memory.
    """

    file: str
    kept: str


@dataclass(frozen=True, slots=True)
class MirrorProblem:
    """A file that was left as it is, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """What one comparison did, or would do: paths of files, relative to the folder.

    `written` and `removed` are files that follow the home; `edited`, `added` and `hidden` are
    memories or notes that follow their files. `waiting` files are just being saved.
    """

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    conflicts: tuple[MirrorConflict, ...] = ()
    problems: tuple[MirrorProblem, ...] = ()
    waiting: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.removed or self.edited or self.added or self.hidden)


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How a namespace is mirrored. `folder` is empty where it is not.

    `pages` are the files that were alike when they were compared last; `problems` those that were
    left alone then; `stopped` says why it goes on no longer by itself.
    """

    folder: str = ""
    pages: int = 0
    last_compared: datetime | None = None
    problems: tuple[MirrorProblem, ...] = ()
    stopped: str | None = None
