"""The remote that an address means."""

from __future__ import annotations

from pathlib import Path

from anaphora.errors import InvalidInput
from anaphora.features.sync.remotes.base import Remote
from anaphora.features.sync.remotes.folder import FolderRemote


def open_remote(address: str, token: str | None = None) -> Remote:
    """The remote at the absolute path of a folder, the URL of a server, or in S3 storage.

    `token` is that of the server, or "key id:secret key" of the storage. InvalidInput for any
    other address.
    """
    if address.startswith(("http://", "https://")):
        from anaphora.features.sync.remotes.server import ServerRemote

        return ServerRemote(address, token)
    if address.startswith("s3://"):
        from anaphora.features.sync.remotes.objects import ObjectRemote

        return ObjectRemote(address, token)
    path = Path(address).expanduser()
    if not path.is_absolute():
        raise InvalidInput(
            "remote",
            address,
            "must be the absolute path of a folder, a URL of a server, or of S3 storage",
        )
    return FolderRemote(path)
