"""The frozen values of sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

__all__ = [
    "SyncConflict",
    "SyncDevice",
    "SyncEntry",
    "SyncItem",
    "SyncReport",
    "SyncRollback",
    "SyncSide",
    "SyncStatus",
    "SyncVerification",
]

SYNC_EVERY: Final = 10.0
"""Seconds between two exchanges, unless told."""


@dataclass(frozen=True, slots=True)
class SyncSide:
    """What one device said in a conflict: the id of the memory, its words, and when it was said.

    `device` is the name that the device was given, or its identifier where it has none. `current`:
    the memory is the one that is recalled as the current one.
    """

    memory: str
    text: str
    device: str
    at: datetime
    current: bool


@dataclass(frozen=True, slots=True)
class SyncConflict:
    """Two values of one thing that two devices said without knowledge of each other.

    `path` is what they are values of; empty where both are versions of one memory without a path.
    `summary` says it in a sentence, in the zone in which times are shown.
    """

    path: str
    earlier: SyncSide
    later: SyncSide
    summary: str


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one exchange did: entries that were sent and received, and that still wait.

    `conflicts` are those that it has found. Nothing is lost in one: the earlier value is history.
    """

    sent: int = 0
    received: int = 0
    waiting: int = 0
    conflicts: tuple[SyncConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """How far sync has come. `project` is empty where the namespace is not synced.

    `devices` maps each device to the number of its last entry here; `device` is this one. `waiting`
    counts the entries with changes that are still to be sent, and `stopped` says why none are.
    With `uncounted` there are later changes, which the next exchange makes entries of.
    """

    project: str = ""
    device: str = ""
    remote: str = ""
    devices: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    last_synced: datetime | None = None
    stopped: str | None = None
    uncounted: bool = False

    @property
    def backlog(self) -> str:
        """What is still to be sent, in words."""
        entries = "1 entry" if self.waiting == 1 else f"{self.waiting} entries"
        return f"{entries}{' and what changed since' if self.uncounted else ''} to be sent"


@dataclass(frozen=True, slots=True)
class SyncDevice:
    """A device of a project: the name that it was given, its entries here, when the last was made.

    `removed`: its later entries do not count, and it cannot read what the others write.
    """

    device: str
    name: str
    entries: int
    last_written: datetime | None
    this: bool = False
    removed: bool = False


@dataclass(frozen=True, slots=True)
class SyncVerification:
    """Entries that were read again and are what they were; how many of them have no content."""

    entries: int
    without_content: int
    devices: int


@dataclass(frozen=True, slots=True)
class SyncRollback:
    """What a rollback to a time changed, or would: ids of memories.

    `restated` were said again, `hidden` are softly forgotten, `shown` are there again.
    """

    to: datetime
    restated: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncItem:
    """What an entry says of one thing: its `kind` ("memory", "thread", "observation", …) and id.

    `values` are the fields that were set, such as `text`, `path` and `payload` of a memory; `added`
    are parts that are only ever added, such as the turns of a thread, by their keys; `dropped` are
    the keys of those that were forgotten, and `forgotten` says that all of it was.
    """

    kind: str
    id: str
    at: datetime
    values: Mapping[str, Any] = field(default_factory=dict)
    added: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class SyncEntry:
    """An entry of a device's log, opened: `id` is its snapshot id, `at` is when it was made.

    `signed`: the signature of its device was checked; False where this device does not know that
    one yet, and only the project's key vouches for the entry. `without_content`: all that it said
    was forgotten, or is said again in a later entry.
    """

    id: str
    device: str
    number: int
    at: datetime | None = None
    items: tuple[SyncItem, ...] = ()
    signed: bool = False
    without_content: bool = False
