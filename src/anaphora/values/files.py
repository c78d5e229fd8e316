"""The frozen values of files that are read: what was left out and why, and a file's part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SourceRole = Literal[
    "code",
    "test",
    "docs",
    "package_config",
    "agent_config",
    "plan",
    "generated",
    "tooling",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not indexed, and why: secret, binary, too_large, unreadable, link_cycle, …"""

    path: str
    reason: str
