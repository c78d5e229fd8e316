"""The interface of remotes: bytes under a project, a device and a number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""What a project or a device may be called."""
_ENTRY: Final = re.compile(r"([0-9]{8,15})\.entry")


def entry_name(number: int) -> str:
    """The name of an entry in a remote of files."""
    return f"{number:08d}.entry"


def number_in(name: str) -> int:
    """The number in such a name; 0 for any other."""
    match = _ENTRY.fullmatch(name)
    return int(match[1]) if match else 0


def before_gap(numbers: set[int]) -> int:
    """The last of the numbers from 1 on that are all there; 0 without the first."""
    last_number = 0
    while last_number + 1 in numbers:
        last_number += 1
    return last_number


class Remote(Protocol):
    """The store of the logs of a project's devices.

    Methods raise `RemoteError` if it cannot be reached or refuses.
    """

    @property
    def name(self) -> str:
        """Its name in messages."""

    def check(self) -> None:
        """Raise RemoteError if it cannot be used, before anything is sent."""

    @property
    def in_order(self) -> bool:
        """Whether an entry that one device has read is there for all others."""

    def close(self) -> None:
        """Close its connections."""

    def heads(self, project: str) -> Mapping[str, int]:
        """The number of the last entry of each device; empty for an unknown project."""

    def read(self, project: str, device: str, number: int, count: int) -> Sequence[bytes]:
        """The bytes of entries from a number on: so many, or fewer, and none before a gap."""

    def write(self, project: str, device: str, number: int, data: bytes) -> None:
        """Keep an entry. When it returns, the entry is as safe as the remote makes it.

        Raises Diverged if a different entry has that number, which stays unchanged.
        """

    def drop(self, project: str, device: str, number: int, data: bytes) -> None:
        """Replace an existing entry by its form without content."""
