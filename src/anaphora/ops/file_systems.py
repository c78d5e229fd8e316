"""On what kind of file system something lies, and whether what is written there is known to last.

In: paths. Out: a `Check` for `doctor`. Only Linux tells the kind of every mount in a file that all
may read; elsewhere it is said that nobody looked. It opens nothing but that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from anaphora.values.conversations import Check

MOUNTS = Path("/proc/self/mounts")
REMOTE = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "drvfs",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
        "smbfs",
        "vboxsf",
    )
)
"""Kinds that lie on another machine, or on the host of this one (9p and drvfs are WSL's drives).

Their locks, their renames and SQLite's shared memory do not work between machines as they do on one
(https://sqlite.org/wal.html, https://sqlite.org/faq.html#q5), and an fsync may return too early.
"""

_OCTAL = re.compile(r"\\([0-7]{3})")


def kind_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of the file system that `path` lies on or would lie on; None where nobody tells.

    Raises OSError where the path cannot be followed.
    """
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    place = path.absolute().resolve()
    found: tuple[int, str] | None = None
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        above = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), point))
        length = len(above.parts)
        # What is mounted over another one at the same point comes later.
        if place.is_relative_to(above) and (found is None or length >= found[0]):
            found = (length, kind)
    return found[1] if found is not None else None


def file_systems(places: Iterable[Path], mounts: Path = MOUNTS) -> Check:
    """Whether any of these places lies where nothing is promised (docs/durability.md)."""
    kinds: dict[str, Path] = {}
    for place in places:
        try:
            kind = kind_of(place, mounts)
        except OSError as error:
            detail = f"{place} cannot be followed: {error.strerror}"
            return Check("file system", ok=False, detail=detail)
        if kind is not None:
            kinds.setdefault(kind, place)
    if not kinds:
        return Check("file system", ok=True, detail="its kind is not told by this system")
    remote = [f"{place} lies on {kind}" for kind, place in kinds.items() if kind in REMOTE]
    if remote:
        detail = f"{'; '.join(remote)}: writes there are not promised to last or to be locked"
        return Check("file system", ok=False, detail=detail)
    return Check("file system", ok=True, detail=", ".join(kinds))
