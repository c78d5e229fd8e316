"""The folder of a project on the disk: which paths are in it, and whether anything came or went.

In: a folder, paths, what was known of them. Out: paths and times. New files are noticed by the
modification times of the folders they are in, so that nothing need be walked while nothing changed.
It reads no file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from anaphora.errors import InvalidInput
from anaphora.ingest.files import Found
from anaphora.ingest.projects.files import PARSER, SIGNED, settled, stat_of
from anaphora.store.projects.rows import FileRow

State: TypeAlias = tuple[str, str, int, int, int]
"""A file as it was read: path, place on the disk, modification time (ns), bytes, inode."""


def project_folder(root: str | Path) -> Path:
    """The real folder of a project. InvalidInput where there is none."""
    try:
        place = Path(root).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInput("root", str(root), "there is no such folder") from error
    if not place.is_dir():
        raise InvalidInput("root", str(root), "it is no folder")
    return place


def path_inside(root: Path, path: str) -> str:
    """A path relative to the project's folder. InvalidInput for one outside of it."""
    given = PurePosixPath(Path(path).as_posix())
    if given.is_absolute():
        if not given.is_relative_to(root.as_posix()):
            raise InvalidInput("only", path, "expected a path inside the project")
        given = given.relative_to(root.as_posix())
    if ".." in given.parts:
        raise InvalidInput("only", path, "expected a path inside the project")
    return str(given)


def is_under(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of these, or in one of them; "." is the whole project."""
    return any(one in {".", path} or path.startswith(one + "/") for one in folders)


def known_states(root: Path, known: Mapping[str, FileRow]) -> list[State]:
    """What `changed_files` compares with, made once for many looks.

    A file that another version has cut is in no state that it could still be in.
    """
    base = f"{root}/"
    return [
        (path, base + path, row.mtime_ns, row.size if row.parser == PARSER else -1, row.inode)
        for path, row in known.items()
    ]


def changed_files(root: Path, known: Iterable[State]) -> tuple[list[Found], list[str]]:
    """The known files whose state is another one now, and the paths of those that are gone."""
    todo: list[Found] = []
    missing: list[str] = []
    look = os.lstat
    # Before each recall this is asked of every file of a project: a call for each would show.
    for path, place, mtime_ns, size, inode in known:
        try:
            seen = look(place)
        except (OSError, ValueError):
            if _is_gone(place):
                missing.append(path)
            continue
        if seen.st_mtime_ns != mtime_ns or seen.st_size != size or seen.st_ino & SIGNED != inode:
            todo.append(Found(path, root / path, seen.st_size, seen.st_mtime_ns))
    return todo, missing


def folder_times(root: Path, files: Iterable[str], started: int) -> dict[str, int]:
    """The modification times (ns) of the folders that have files, or folders with files.

    `started` is when the walk began: a folder that changed since, or just before, has 0.
    """
    folders = {"."}
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    found: dict[str, int] = {}
    for folder in sorted(folders):
        stat = stat_of(root / folder)
        found[folder] = 0 if stat is None else max(0, settled(stat, started).mtime_ns)
    return found


def folders_changed(times: Mapping[str, int], root: Path) -> bool:
    """Whether anything came to one of these folders, or left it; so where none is known."""
    if not times:
        return True
    base = str(root)
    try:
        return any(
            os.lstat(base if folder == "." else f"{base}/{folder}").st_mtime_ns != mtime_ns
            for folder, mtime_ns in times.items()
        )
    except (OSError, ValueError):
        return True


def _is_gone(place: str) -> bool:
    """Whether there is no such file; one that cannot be looked at may be there."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
