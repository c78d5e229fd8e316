"""The frozen values of files that are read: what was left out and why, roles, places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anaphora.values.conversations import ImportProblem

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


@dataclass(frozen=True, slots=True)
class TakenFile:
    """What became of a file that was offered to a feature.

    "left_out" is a file of another kind, which `reason` names; "failed" one that may have words of
    the user and cannot be read, with the `reason`. `problems` are parts that could not be read.
    """

    action: Literal["added", "known", "forgotten", "left_out", "failed"]
    reason: str = ""
    problems: tuple[ImportProblem, ...] = ()
    redacted: tuple[str, ...] = ()


def place_of(page: int | None, heading: tuple[str, ...]) -> str:
    """Where a part of a file stands, for people."""
    parts = [f"page {page}"] if page is not None else []
    parts += [" > ".join(heading)] if heading else []
    return ", ".join(parts)
