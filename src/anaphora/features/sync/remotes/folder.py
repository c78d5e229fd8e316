"""A folder as a remote: one that Syncthing or Dropbox synchronises, or a network share.

    <folder>/<project>/<device>/00000001.entry

Each device writes files of its own, each under a temporary name first, and none twice: no locks
are needed, and files may arrive in any order.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from anaphora.errors import Diverged, RemoteError, RemoteTampered
from anaphora.features.sync.remotes.base import NAME, before_gap, entry_name, number_in
from anaphora.store.disk import make_directory, open_regular, sync, sync_directory
from anaphora.system.bounded import MOST_BYTES


class FolderRemote:
    """The folder at `path`, which must be there: one that is not mounted must not be made."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        """The folder's path."""
        return str(self._path)

    @property
    def in_order(self) -> bool:
        """As `Remote.in_order`: files may arrive in any order."""
        return False

    def check(self) -> None:
        """As `Remote.check`."""
        if not self._path.is_dir():
            raise RemoteError(self.name, "the folder is not there")

    def close(self) -> None:
        """As `Remote.close`."""

    def heads(self, project: str) -> Mapping[str, int]:
        """As `Remote.heads`: if entries arrive out of order, the last before a gap."""
        heads: dict[str, int] = {}
        try:
            self.check()
            directory = self._project_folder(project)
            devices = sorted(directory.iterdir()) if directory.is_dir() else []
            for device in devices:
                if NAME.fullmatch(device.name) and device.is_dir():
                    heads[device.name] = before_gap(
                        {number_in(file.name) for file in device.iterdir()}
                    )
        except OSError as error:
            raise self._remote_error(error) from error
        return {device: number for device, number in heads.items() if number}

    def read(self, project: str, device: str, number: int, count: int) -> Sequence[bytes]:
        """As `Remote.read`."""
        files = (
            self._entry_file(project, device, index) for index in range(number, number + count)
        )
        try:
            present = list(takewhile(os.path.lexists, files))
        except OSError as error:
            raise self._remote_error(error) from error
        return [self._read_bytes(file, device, number_in(file.name)) for file in present]

    def write(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.write`."""
        file = self._entry_file(project, device, number)
        try:
            self.check()
            if os.path.lexists(file):
                if self._read_bytes(file, device, number) != data:
                    raise Diverged(self.name, f"entry {number} of this device is another one")
                return
        except OSError as error:
            raise self._remote_error(error) from error
        self._write_file(file, data)

    def drop(self, project: str, device: str, number: int, data: bytes) -> None:
        """As `Remote.drop`."""
        self._write_file(self._entry_file(project, device, number), data)

    def _read_bytes(self, file: Path, device: str, number: int) -> bytes:
        """The bytes of an entry. RemoteTampered if it is not a file, or too large."""
        try:
            with open_regular(file) as source:
                content = source.read(MOST_BYTES + 1)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENXIO, errno.ELOOP, errno.ENOENT):
                raise RemoteTampered(
                    self.name, device, number, f"it cannot be read ({error.strerror})"
                ) from error
            raise
        if len(content) > MOST_BYTES:
            raise RemoteTampered(self.name, device, number, "it is too large")
        return content

    def _write_file(self, file: Path, data: bytes) -> None:
        temporary = file.with_name(f".{file.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
        try:
            make_directory(file.parent)
            with temporary.open("xb") as target:
                target.write(data)
                target.flush()
                sync(target.fileno())
            temporary.replace(file)
            sync_directory(file.parent)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise self._remote_error(error) from error

    def _project_folder(self, project: str) -> Path:
        if not NAME.fullmatch(project):
            raise RemoteError(self.name, f"{project!r} is not a project", lasting=True)
        return self._path / project

    def _entry_file(self, project: str, device: str, number: int) -> Path:
        if not NAME.fullmatch(device):
            raise RemoteError(self.name, f"{device!r} is not a device", lasting=True)
        return self._project_folder(project) / device / entry_name(number)

    def _remote_error(self, error: OSError) -> RemoteError:
        return RemoteError(self.name, error.strerror or str(error))
