"""The remote that an address means."""

from __future__ import annotations

from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.sync.remotes.base import Remote
from anaphora.sync.remotes.folder import FolderRemote


def open_remote(address: str) -> Remote:
    """The remote at the absolute path of a folder. InvalidInput for any other address."""
    path = Path(address).expanduser()
    if not path.is_absolute():
        raise InvalidInput("remote", address, "must be the absolute path of a folder")
    return FolderRemote(path)
