"""Other platforms, simulated on this one: what their file systems refuse and what they confuse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest


def ignore_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names differ by more than the case of letters, for files and for paths, as on Windows.

    A file is found under any spelling of its name. Only names that exist are found so: what is
    made keeps the name it is given.
    """
    lexists = os.path.lexists

    def found(path: Any) -> bool:
        place = Path(path)
        if lexists(path) or not place.parent.is_dir():
            return lexists(path)
        return place.name.lower() in {name.lower() for name in os.listdir(place.parent)}  # noqa: PTH208

    monkeypatch.setattr(os.path, "lexists", found)
    monkeypatch.setattr(
        PurePath,
        "__eq__",
        lambda self, other: isinstance(other, PurePath) and str(self).lower() == str(other).lower(),
    )
    monkeypatch.setattr(PurePath, "__hash__", lambda self: hash(str(self).lower()))


def refuse_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is open can be neither removed nor renamed, nor can a folder in which something is.

    As on Windows, where hardly a program opens its files for others to delete.
    """
    monkeypatch.setattr("anaphora.store.disk.MOVES_OPEN_FILES", False)
    for name in ("unlink", "remove", "rename", "replace", "rmdir"):
        monkeypatch.setattr(os, name, _refusing(getattr(os, name)))


def _refusing(call: Any) -> Any:
    def refuse(path: Any, *others: Any, **named: Any) -> Any:
        if call.__name__ == "rename" and os.path.lexists(others[0]):
            raise FileExistsError(17, "it is there already", str(others[0]))
        folder = "" if named.get("dir_fd") is None else f"/proc/self/fd/{named['dir_fd']}"
        above = os.path.realpath(folder) if folder else ""
        for place in (path, *others[:1]):
            # The folder itself is open where `shutil.rmtree` works through it.
            taken = _open_below(os.path.abspath(os.path.join(above, place)))  # noqa: PTH100, PTH118
            if taken:
                raise PermissionError(13, f"it is open in this process: {taken}", str(path))
        return call(path, *others, **named)

    return refuse


def _open_below(place: str) -> str | None:
    for open_file in _open_files():
        if Path(open_file).is_dir():
            continue
        if open_file == place or open_file.startswith(place + os.sep):
            return open_file
    return None


def _open_files() -> Iterator[str]:
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            yield os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:
            continue
    # What is mapped is as good as open.
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        if "/" in line:
            yield line[line.index("/") :]


class _Entry:
    """An entry of a folder as Windows gives it: without the number of its file."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry
        self.name, self.path = entry.name, entry.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = self._entry.stat(follow_symlinks=follow_symlinks)
        return os.stat_result((found[0], 0, 0, *found[3:]), {
            name: getattr(found, name) for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")
        })  # fmt: skip


class _Entries:
    def __init__(self, entries: Any) -> None:
        self._entries = entries

    def __enter__(self) -> Iterator[_Entry]:
        return map(_Entry, self._entries.__enter__())

    def __exit__(self, *error: object) -> None:
        self._entries.__exit__(*error)

    def __iter__(self) -> Iterator[_Entry]:
        return map(_Entry, self._entries)


def hide_file_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries of a folder do not tell which file they are, as on Windows."""
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path=".": _Entries(scandir(path)))
