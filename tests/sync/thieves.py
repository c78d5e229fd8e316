"""A device that was stolen: it writes on after it was removed, and reads nothing that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from anaphora import Memory
from anaphora.features.sync.membership import join_project
from anaphora.features.sync.reader import EntryReader


@contextmanager
def deaf() -> Iterator[None]:
    """While it lasts a device sends and reads nothing."""
    with patch.object(EntryReader, "read", lambda *_: 0):
        yield


def send(memory: Memory) -> None:
    """Send what a stolen device says."""
    with deaf():
        memory.sync.now()


def forge(memory: Memory, device: str) -> None:
    """Let a stolen device go on under a new identity with this name."""

    def join(*given: Any) -> Any:
        return replace(join_project(*given), device=device)

    with patch("anaphora.features.sync.manager.join_project", join):
        memory.sync.fork()


def remove(memory: Memory, device: str) -> None:
    """Let a stolen device remove another one."""
    with deaf():
        memory.sync.remove(device)


@contextmanager
def unread_removal(remote: Path, remover: Memory, device: str) -> Iterator[None]:
    """Remove a device; the entries that say so arrive when this is left."""
    before = set(remote.rglob("*.entry"))
    remover.sync.remove(device)
    late = {file: file.read_bytes() for file in set(remote.rglob("*.entry")) - before}
    for file in late:
        file.unlink()
    yield
    for file, data in late.items():
        file.write_bytes(data)
