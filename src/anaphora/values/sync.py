"""The frozen values of sync."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

__all__ = ["SyncReport", "SyncStatus"]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one exchange did: entries that were sent and received, and that still wait."""

    sent: int = 0
    received: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """How far sync has come. `project` is empty where the namespace is not synced.

    `devices` maps each device to the number of its last entry here; `device` is this one. `waiting`
    counts the changes that are still to be sent, `stopped` says why none are.
    """

    project: str = ""
    device: str = ""
    remote: str = ""
    devices: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    last_synced: datetime | None = None
    stopped: str | None = None
