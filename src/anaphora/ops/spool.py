"""A file for what passes through a server, which nobody finds: an upload, an export on its way.

In: a home. Out: a file open for writing and reading, and a path under which this process alone can
open it again. It lies in the home and nowhere else, on Linux without ever having a name: whoever
is killed leaves nothing, and what it held is free space again, like that of any file that was
deleted. Where a file must have a name to be opened, it has one in a locked folder of the home,
which the next spool there, the next server, or `doctor --repair` removes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from anaphora.ops import staging
from anaphora.store.disk import make_directory, translate

_NAME: Final = "upload"


@dataclass(frozen=True, slots=True)
class Spool:
    """An open file, and the path under which this process can open it once more."""

    file: BinaryIO
    path: Path


@contextmanager
def spooled(home: Path) -> Iterator[Spool]:
    """A new spool in a home; it is gone afterwards. Raises `StoreError` and its kinds."""
    if hasattr(os, "O_TMPFILE"):
        with _nameless(home) as file:
            yield Spool(file, Path(f"/proc/self/fd/{file.fileno()}"))
        return
    with staging.staged(home / _NAME) as folder, staging.open_new(folder / _NAME) as made:
        path = folder / _NAME
        made.close()
        with path.open("r+b") as file:
            yield Spool(file, path)


def sweep(home: Path) -> int:
    """Remove what a killed process left of its spools; how many that were."""
    return staging.make_room(home / _NAME)


def _nameless(home: Path) -> BinaryIO:
    try:
        make_directory(home)
        try:
            number = os.open(home, os.O_RDWR | os.O_TMPFILE, 0o600)
        except OSError:
            # Not every file system knows files without a name: it has one while it is empty.
            path = home / f".{_NAME}.{os.urandom(6).hex()}"
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            path.unlink()
    except OSError as error:
        raise translate(error, "write", home) from error
    return os.fdopen(number, "w+b")
