"""What this store wrote last of each thread, under a second name in `.written`.

A program that knows no lock may put an older state of a thread back. The second name (a hard link,
no copy) keeps the bytes that it replaced until they are known to be in the file. A file that was
exchanged for ours while we wrote lies there as `.<key>.swap` for as long as it takes to join both.
Where a disk has no hard links, nothing is kept and such a write is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anaphora.store.disk import Identity, exchange_file, make_directory, replace_file
from anaphora.store.threads.ids import SUFFIX

FOLDER = ".written"
# No longer than ".json", so that every name that fits there fits here.
_LAST, _SWAP = ".last", ".swap"


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """The second name of one thread's file. Whoever calls `settle` or writes holds its lock."""

    path: Path
    key: str

    @property
    def link(self) -> Path:
        """The name of what was written last."""
        return self.path.parent / FOLDER / self.path.with_suffix(_LAST).name

    @property
    def swap(self) -> Path:
        """The name of a file while it is exchanged."""
        return self.path.parent / FOLDER / f".{self.key}{_SWAP}"

    def differs(self) -> bool:
        """Whether the file may lack what was written, or a swap was left over."""
        link = _inode(self.link)
        return (link is not None and link != _inode(self.path)) or os.path.lexists(self.swap)

    def replace(self, old: Identity, content: bytes | Callable[[BinaryIO], object]) -> Identity:
        """Put content in the place of the file, as `replace_file`, and keep its second name."""
        return replace_file(self.path, self.key, old, content, prepare=self._keep)

    def exchange(self, old: Identity, content: bytes | Callable[[BinaryIO], object]) -> Identity:
        """The same, without a moment in which another program's write would be lost.

        NO_FILE where another file than `old` was exchanged: it lies at `swap`, to be joined.
        """
        make_directory(self.swap.parent)
        return exchange_file(self.path, self.swap, self.key, old, content, prepare=self._keep)

    def drop(self) -> None:
        """Forget what was written. Raises OSError."""
        for name in (self.swap, self.link, self._new):
            name.unlink(missing_ok=True)

    @property
    def _new(self) -> Path:
        return self.path.parent / FOLDER / f".{self.key}.new"

    def _keep(self, temporary: Path) -> None:
        make_directory(self._new.parent)
        self._new.unlink(missing_ok=True)
        # Some disks know no second name for a file.
        with suppress(OSError):
            os.link(temporary, self._new)
            self._new.replace(self.link)


def remove_written(directory: Path) -> None:
    """Remove every second name in a folder of threads. Raises OSError."""
    folder = directory / FOLDER
    with suppress(FileNotFoundError):
        for name in folder.iterdir():
            name.unlink(missing_ok=True)
        folder.rmdir()


def second_names(directory: Path) -> tuple[dict[str, int], bool]:
    """The inode of each second name by the file's name, and whether a swap was left over."""
    inodes: dict[str, int] = {}
    has_swap = False
    # A user who may not look there reads the files as they are.
    with suppress(OSError), os.scandir(directory / FOLDER) as entries:
        for entry in entries:
            if entry.name.endswith(_SWAP):
                has_swap = True
            elif entry.name.endswith(_LAST):
                inodes[entry.name.removesuffix(_LAST) + SUFFIX] = entry.inode()
    return inodes, has_swap


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
