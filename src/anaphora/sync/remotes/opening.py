"""The remote that an address means."""

from __future__ import annotations

from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.sync.remotes.base import Remote
from anaphora.sync.remotes.folder import FolderRemote


def open_remote(address: str, token: str | None = None) -> Remote:
    """The remote at the absolute path of a folder, or at the URL of a server, with its token.

    InvalidInput for any other address.
    """
    if address.startswith(("http://", "https://")):
        from anaphora.sync.remotes.server import ServerRemote

        return ServerRemote(address, token)
    path = Path(address).expanduser()
    if not path.is_absolute():
        raise InvalidInput(
            "remote", address, "must be the absolute path of a folder, or the URL of a server"
        )
    return FolderRemote(path)
