"""What a power cut can leave of a folder: the images that a disk may hold, from a log of calls.

In: the folder as it was, and the calls that changed it (`faults.Run`). Out: folders as they may be
found after the power failed at a chosen point. Only what was synced must be there: bytes of a file
by a sync of that file, a name (made, renamed, removed) by a sync of its directory. Everything else
may be there or not, alone or together, a write also by a part of it. That is less than ext4, xfs
or btrfs promise, so whoever survives these images needs no particular one of them. A sync that
failed makes nothing last, and no later one does for the bytes before it (the kernel forgets them).
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tests.durability.faults import Call

__all__ = ["Disk", "folder_of", "read_folder"]

_FOLDER = -1
_SECTOR = 512
_SIZES = frozenset(("truncate", "ftruncate", "fallocate"))
Tree = dict[str, bytes | None]
"""Contents by path; None for a folder."""


@dataclass(slots=True)
class _Change:
    """One change of a file's bytes (`node`) or of names; `durable`: the call that made it last."""

    at: int
    node: int = _FOLDER
    offset: int = 0
    data: bytes = b""
    size: int | None = None
    grows: bool = False
    names: tuple[tuple[str, int | None], ...] = ()
    folders: frozenset[str] = frozenset()
    durable: int | None = None
    lost: bool = False


@dataclass(slots=True)
class Disk:
    """A folder as it was, and what was done to it since, call by call."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)
    calls: int = 0
    _live: dict[str, int] = field(default_factory=dict)
    _next: int = 0

    @classmethod
    def of(cls, before: Tree, calls: Sequence[Call]) -> Disk:
        """What `calls` did to the folder `before`, all of which is on the disk for good."""
        disk = cls()
        for path, data in before.items():
            disk.names[path] = _FOLDER if data is None else disk._new(data)
        disk._live = dict(disk.names)
        for at, call in enumerate(calls):
            disk._take(at, call)
        disk.calls = len(calls)
        return disk

    def live(self) -> Tree:
        """The folder as a running system sees it in the end."""
        return self._tree(self.changes)

    def images(self, point: int, chance: random.Random, more: int = 3) -> Iterator[Tree]:
        """What may be found when the power failed after the first `point` calls, each once.

        Nothing but what was synced; everything; names without bytes and bytes without names; and
        `more` times some of each, writes torn at a sector.
        """
        ways: list[Callable[[_Change], bool]] = [
            lambda _: False,
            lambda _: True,
            lambda change: bool(change.names),
            lambda change: not change.names,
        ]
        ways += [lambda _: chance.random() < 0.5] * more
        seen: set[int] = set()
        for number, way in enumerate(ways):
            chosen = [
                change if _lasts(change, point) else _torn(change, chance, torn=number >= 4)
                for change in self.changes
                if change.at < point and (_lasts(change, point) or way(change))
            ]
            tree = self._tree(chosen)
            key = hash(tuple(sorted(tree.items(), key=lambda item: item[0])))
            if key not in seen:
                seen.add(key)
                yield tree

    def _new(self, data: bytes) -> int:
        self._next += 1
        self.contents[self._next] = data
        return self._next

    def _take(self, at: int, call: Call) -> None:
        if call.failed:
            if call.syncs and call.path in self._live:
                self._forget(self._live[call.path])
            return
        if call.syncs:
            self._sync(at, call.path)
        elif call.name == "open":
            self._open(at, call)
        elif call.name in {"rename", "exchange", "link", "unlink", "rmdir", "mkdir"}:
            self._rename(at, call)
        elif call.path in self._live and call.writes:
            change = _Change(at, self._live[call.path], call.offset, call.data)
            self.changes.append(change)
        elif call.path in self._live and call.name in _SIZES:
            grows = call.name == "fallocate"
            self.changes.append(_Change(at, self._live[call.path], size=call.size, grows=grows))

    def _open(self, at: int, call: Call) -> None:
        if call.made:
            self._name(at, [(call.path, self._new(b""))])
        elif call.cut and call.path in self._live:
            self.changes.append(_Change(at, self._live[call.path], size=0))

    def _rename(self, at: int, call: Call) -> None:
        path, other = call.path, call.other
        if call.name == "mkdir":
            self._name(at, [(path, _FOLDER)])
        elif call.name in {"unlink", "rmdir"}:
            if path in self._live:
                self._name(at, [(path, None)])
        elif call.name == "exchange":
            traded = [(path, self._live[other]), (other, self._live[path])]
            self._name(at, traded, {_above(other)})
        elif call.name == "link":
            self._name(at, [(other, self._live[path])])
        else:
            moved = [one for one in self._live if one == path or one.startswith(path + "/")]
            gone: list[tuple[str, int | None]] = [(one, None) for one in moved]
            came: list[tuple[str, int | None]] = [
                (other + one[len(path) :], self._live[one]) for one in moved
            ]
            self._name(at, gone + came, {_above(other)})

    def _name(
        self, at: int, names: Sequence[tuple[str, int | None]], folders: set[str] | None = None
    ) -> None:
        for path, node in names:
            if node is None:
                self._live.pop(path, None)
            else:
                self._live[path] = node
        inside = frozenset(folders or {_above(names[0][0])})
        self.changes.append(_Change(at, names=tuple(names), folders=inside))

    def _sync(self, at: int, path: str) -> None:
        node = self._live.get(path, _FOLDER)
        for change in self.changes:
            if change.durable is not None or change.lost:
                continue
            if change.names:
                mine = path in change.folders
            else:
                mine = node != _FOLDER and change.node == node
            if mine:
                change.durable = at

    def _forget(self, node: int) -> None:
        for change in self.changes:
            if not change.names and change.node == node and change.durable is None:
                change.lost = True

    def _tree(self, changes: Sequence[_Change]) -> Tree:
        names = dict(self.names)
        contents: dict[int, bytes] = {}
        for change in changes:
            for path, node in change.names:
                if node is None:
                    names.pop(path, None)
                else:
                    names[path] = node
            if not change.names:
                old = contents.get(change.node, self.contents[change.node])
                contents[change.node] = _changed(old, change)
        tree: Tree = {}
        # A name in a folder that is not there leads nowhere. Shorter paths come first.
        for path, node in sorted(names.items()):
            above = _above(path)
            if above != "." and (above not in tree or tree[above] is not None):
                continue
            tree[path] = None if node == _FOLDER else contents.get(node, self.contents[node])
        return tree


def _above(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _lasts(change: _Change, point: int) -> bool:
    return change.durable is not None and change.durable < point


def _torn(change: _Change, chance: random.Random, *, torn: bool) -> _Change:
    """A part of a write, up to the end of some sector; the whole of it where not `torn`."""
    if not torn or len(change.data) <= _SECTOR or chance.random() < 0.5:
        return change
    first = _SECTOR - change.offset % _SECTOR
    ends = range(first, len(change.data), _SECTOR)
    cut = chance.choice(ends) if ends else first
    return _Change(change.at, change.node, change.offset, change.data[:cut])


def _changed(old: bytes, change: _Change) -> bytes:
    if change.size is not None:
        size = max(change.size, len(old)) if change.grows else change.size
        return old[:size].ljust(size, b"\0")
    end = change.offset + len(change.data)
    return old[: change.offset].ljust(change.offset, b"\0") + change.data + old[end:]


def read_folder(place: Path, ignore: Sequence[str] = ()) -> Tree:
    """Everything in a folder, by path; but for what is below `ignore`, and shared memory."""
    found: Tree = {}
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        derived = any(name == one or name.startswith(one + "/") for one in ignore)
        if not derived and not name.endswith("-shm"):
            found[name] = None if path.is_dir() else path.read_bytes()
    return found


def folder_of(tree: Tree, place: Path) -> None:
    """Put an image where nothing is. SQLite's shared memory does not outlive the machine."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, data in sorted(tree.items()):
        path = place / name
        if data is None:
            path.mkdir()
        elif not name.endswith("-shm"):
            path.write_bytes(data)
