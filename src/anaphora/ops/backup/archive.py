"""The file of a backup: a zip with a manifest that has the hash of every member.

A member is believed only when its hash is the one in the manifest. Nothing here knows what a member
means.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from anaphora.errors import DamagedBackup, StoreError
from anaphora.store.disk import open_regular, translate

MANIFEST = "manifest.json"
_CHUNK = 1 << 20
# Half of the data are vectors, which hardly shrink: a higher level costs time only.
_LEVEL = 3
_ENCRYPTED = 0x1
_FIRST = (1980, 1, 1, 0, 0, 0)
_LAST = (2107, 12, 31, 23, 59, 58)
# The kinds written here; the library unpacks a block of the others at once, however large.
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# A home of a million threads has one of some 200 MB, stored as it is.
_MOST_MANIFEST = 64 << 20
# The library's errors for an invalid zip file.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)


class Packer:
    """Writes the members of a backup, one after the other. `dense`: they cannot be compressed."""

    def __init__(self, file: IO[bytes], when: datetime, *, dense: bool) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        # The format has no dates before or after these; the manifest has the real one.
        self._date = min(max(when.timetuple()[:6], _FIRST), _LAST)
        self._kind = zipfile.ZIP_STORED if dense else zipfile.ZIP_DEFLATED
        self.members: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Packer:
        return self

    def __exit__(self, *_: object) -> None:
        # After a failure it would try to write its end on garbage collection, when the file is
        # closed. A full disk fails here once more, and has been reported already.
        with suppress(OSError):
            self._zip.close()

    def add(self, name: str, data: bytes) -> None:
        """Write a member from memory."""
        with self.member(name) as write:
            write(data)

    def add_file(self, name: str, path: Path) -> None:
        """Write a member from a file, piece by piece."""
        with self.member(name) as write, path.open("rb") as source:
            while chunk := source.read(_CHUNK):
                write(chunk)

    @contextmanager
    def member(self, name: str) -> Iterator[Callable[[bytes], None]]:
        """Open a member: call the yielded function with its bytes. Only one may be open."""
        digest, size = hashlib.sha256(), 0
        info = zipfile.ZipInfo(name, self._date)
        info.compress_type = self._kind
        info.external_attr = 0o600 << 16
        # The public way to set a level for one member exists only from Python 3.13 on.
        info._compresslevel = _LEVEL  # type: ignore[attr-defined]
        with self._zip.open(info, "w", force_zip64=True) as target:

            def write(data: bytes) -> None:
                nonlocal size
                digest.update(data)
                size += len(data)
                target.write(data)

            yield write
        self.members[name] = {"sha256": digest.hexdigest(), "bytes": size}

    def finish(self, manifest: dict[str, Any]) -> None:
        """Write the manifest and the end of the file."""
        document = manifest | {"members": self.members}
        text = json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True)
        self._zip.writestr(zipfile.ZipInfo(MANIFEST, self._date), text + "\n")
        self._zip.close()


class Unpacker:
    """Reads the members of a backup and checks them against its manifest."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self._path = path
        self._zip = file
        infos = file.infolist()
        if any(i.flag_bits & _ENCRYPTED or i.compress_type not in _KINDS for i in infos):
            raise DamagedBackup("read", path, "it is not an Anaphora backup")
        try:
            info = file.getinfo(MANIFEST)
            # It is written uncompressed: a compressed one may unpack to any size.
            if info.file_size > max(_MOST_MANIFEST, info.compress_size):
                raise ValueError("a manifest that is packed")
            manifest = json.loads(file.read(MANIFEST))
            sane = all(
                isinstance(listed_member["sha256"], str) and isinstance(listed_member["bytes"], int)
                for listed_member in manifest["members"].values()
            )
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedBackup("read", path, "it has no valid manifest") from error
        if manifest.get("anaphora") != "backup" or not sane:
            raise DamagedBackup("read", path, "it has no valid manifest")
        if manifest.get("version") != 1:
            reason = f"its format {manifest.get('version')} is newer than this program"
            raise StoreError("read", path, reason)
        self.manifest: dict[str, Any] = dict(manifest)
        names = file.namelist()
        if sorted(names) != sorted([*self.members, MANIFEST]):
            raise DamagedBackup("read", path, "its contents do not match its manifest")

    @property
    def members(self) -> dict[str, dict[str, Any]]:
        """The hash and size of every member, from the manifest."""
        members: dict[str, dict[str, Any]] = self.manifest["members"]
        return members

    def read(self, name: str, write: Callable[[bytes], object]) -> None:
        """Pass a member to `write`, piece by piece. `DamagedBackup` if its hash is wrong.

        The hash is checked only at the end: the written bytes must not be used before.
        """
        digest, size = hashlib.sha256(), 0
        listed_member = self.members[name]
        with self._zip.open(name) as source:
            # A member longer than its listed size is wrong: reading stops there.
            while size <= listed_member["bytes"] and (chunk := source.read(_CHUNK)):
                digest.update(chunk)
                size += len(chunk)
                write(chunk)
        if (digest.hexdigest(), size) != (listed_member["sha256"], listed_member["bytes"]):
            raise DamagedBackup("read", self._path, f"{name} does not match its hash")


@contextmanager
def opened(path: Path) -> Iterator[Unpacker]:
    """The backup at `path`. `DamagedBackup` for another or an incomplete file; `StoreError`."""
    try:
        with open_regular(path) as raw, zipfile.ZipFile(raw) as file:
            yield Unpacker(path, file)
    except _BROKEN as error:
        raise DamagedBackup("read", path, f"it is not a complete zip file ({error})") from error
    except OSError as error:
        raise translate(error, "read", path) from error
