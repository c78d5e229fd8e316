"""What this store wrote last of each thread, under a second name in `.written`.

A program that knows no lock may put an older state of a thread back. The second name (a hard link,
no copy) keeps the bytes that it replaced until they are known to be in the file. A file that was
exchanged for ours while we wrote lies there as `.<key>.<n>.swap` until a joined file has its place.
Where a disk has no hard links, nothing is kept and such a write is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    exchange_file,
    make_directory,
    replace_file,
)
from anaphora.store.threads.ids import SUFFIX

FOLDER = ".written"
# No longer than ".json", so that every name that fits there fits here.
_LAST, _SWAP = ".last", ".swap"
# A join needs one name more than there are files to join; each kill at the wrong moment leaves one.
_SWAPS = 4


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """The second name of one thread's file. To call `settle` or to write takes its lock."""

    path: Path
    key: str

    @property
    def link(self) -> Path:
        """The name of what was written last."""
        return self.path.parent / FOLDER / self.path.with_suffix(_LAST).name

    def displaced(self) -> tuple[Path, ...]:
        """The files that were exchanged for ours, or that an interrupted write left."""
        return tuple(name for name in self._swaps() if os.path.lexists(name))

    def differs(self) -> bool:
        """Whether the file may lack what was written, or a swap was left over."""
        link = _inode(self.link)
        return (link is not None and link != _inode(self.path)) or bool(self.displaced())

    def replace(self, old: Identity, content: bytes | Callable[[BinaryIO], object]) -> Identity:
        """Put content in the place of the file, as `replace_file`, and keep its second name."""
        return replace_file(self.path, self.key, old, content, prepare=self._keep)

    def exchange(self, old: Identity, content: bytes | Callable[[BinaryIO], object]) -> Identity:
        """The same, without a moment in which another program's write would be lost.

        NO_FILE where another file than `old` was exchanged: it is then among the displaced.
        FileChanged where the file is not `old` any more; nothing is kept of the content then.
        """
        swap = next((name for name in self._swaps() if not os.path.lexists(name)), None)
        if swap is None:
            return self.replace(old, content)
        make_directory(swap.parent)
        try:
            return exchange_file(self.path, swap, self.key, old, content, prepare=self._keep)
        except FileChanged:
            if old == NO_FILE:
                # What was kept is not in the file: the next try would add it a second time.
                self.link.unlink(missing_ok=True)
            raise

    def drop(self) -> None:
        """Forget what was written. Raises OSError."""
        for name in (*self._swaps(), self.link, self._new):
            name.unlink(missing_ok=True)

    def _swaps(self) -> Iterator[Path]:
        folder = self.path.parent / FOLDER
        return (folder / f".{self.key}.{number}{_SWAP}" for number in range(_SWAPS))

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
    # Without the right to look there the files are read as they are.
    with suppress(OSError), os.scandir(directory / FOLDER) as entries:
        for dir_entry in entries:
            if dir_entry.name.endswith(_SWAP):
                has_swap = True
            elif dir_entry.name.endswith(_LAST):
                inodes[dir_entry.name.removesuffix(_LAST) + SUFFIX] = dir_entry.inode()
    return inodes, has_swap


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
