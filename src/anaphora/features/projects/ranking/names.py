"""Which files and folders of a project does a focus call by their names?

Names are given as they were written: paths, dotted names, frames of a traceback. Files and folders
come out with how surely each is meant (0 … 1); a name that fits nothing gives nothing.

A path fits where whole components agree from its end: `requests/adapters.py` in a traceback's
`/usr/lib/python3/site-packages/requests/adapters.py`, `adapters.py` alone. A dotted name fits by
its beginning: `flask.config.Config` is `src/flask/config.py`. A folder fits like a path: `shop` and
`src/shop` are both `src/shop`, unless there is a folder of just that path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

AMBIGUOUS: Final = 0.5
"""The power by which a name that fits n files counts less for each: n ** -0.5."""

SINGLE: Final = 0.6
"""What a lone word of a dotted name counts: `config.get` may well be a variable."""

NOT_LAST: Final = 0.6
"""What a frame counts that is not the last one in the project: it called, it did not raise."""

_SPLIT: Final = re.compile(r"\.|::|#|/")
_ENTRY: Final = frozenset(("__init__", "index", "mod", "lib", "main"))


class PathNames:
    """The names of a project's files, made once and asked often."""

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are relative and posix; a file's code is its place."""
        self._parts = [tuple(path.lower().split("/")) for path in paths]
        self._modules: list[tuple[str, ...]] = []
        self._by_name: dict[str, list[int]] = {}
        self._by_module: dict[str, list[int]] = {}
        for code, parts in enumerate(self._parts):
            stem = parts[-1].partition(".")[0] if not parts[-1].startswith(".") else parts[-1]
            module = parts[:-1] if stem in _ENTRY else (*parts[:-1], stem)
            self._modules.append(module)
            self._by_name.setdefault(parts[-1], []).append(code)
            if module:
                self._by_module.setdefault(module[-1], []).append(code)

    def named(self, names: Iterable[tuple[str, str, float]]) -> dict[int, float]:
        """The files that `names` mean: (text, kind, weight) with kind path, dotted or frame."""
        files: dict[int, float] = {}
        frames: list[tuple[list[int], float]] = []
        for text, kind, weight in names:
            if kind == "frame":
                codes = self._find_path(text)
                if codes:
                    frames.append((codes, weight))
            elif kind == "path":
                _keep(files, self._find_path(text), weight)
            elif kind == "dotted":
                codes, sure = self._find_dotted(text)
                _keep(files, codes, weight * sure)
        for number, (codes, weight) in enumerate(frames, 1):
            _keep(files, codes, weight * (1.0 if number == len(frames) else NOT_LAST))
        return files

    def _find_path(self, text: str) -> list[int]:
        """The files that agree with a written path in most components from the end."""
        written_parts = tuple(part for part in text.lower().replace("\\", "/").split("/") if part)
        longest_match, codes = 0, list[int]()
        for code in self._by_name.get(written_parts[-1], ()) if written_parts else ():
            parts = self._parts[code]
            shorter = min(len(written_parts), len(parts))
            pairs = enumerate(zip(reversed(written_parts), reversed(parts), strict=False))
            common = next((count for count, (a, b) in pairs if a != b), shorter)
            # A foreign `core/frame.py` is not our `app/frame.py`: one of them has to fit whole,
            # or the two have to share a folder.
            if common < 2 and common < shorter:
                continue
            if common >= longest_match:
                codes = [*codes, code] if common == longest_match else [code]
                longest_match = common
        return codes

    def _find_dotted(self, text: str) -> tuple[list[int], float]:
        """The modules that a dotted name begins with, the longest beginning first."""
        written_parts = tuple(part for part in _SPLIT.split(text.lower()) if part)
        for length in range(len(written_parts), 0, -1):
            candidates = self._by_module.get(written_parts[length - 1], ())
            fits = [
                code
                for code in candidates
                if self._modules[code][-length:] == written_parts[:length]
            ]
            if fits and (length > 1 or len(fits) == 1):
                return fits, 1.0 if length > 1 else SINGLE
        return [], 0.0


def _keep(files: dict[int, float], codes: Sequence[int], weight: float) -> None:
    for code in codes:
        files[code] = max(files.get(code, 0.0), weight * len(codes) ** -AMBIGUOUS)


Folder = tuple[int, str]
"""A project's code, and the path of a folder in it."""

DOCUMENTS: Final = ("readme", "index", "__init__", "mod", "lib", "package-info")
"""Whose stem says that a file speaks for its folder, the first of them before the others."""

AMBIGUOUS_FOLDERS: Final = 3
"""A name of more folders than this does not say which one is meant."""


def documents(paths: Iterable[str]) -> dict[str, str]:
    """The document of each folder that has one, by the folder; "" is the root."""
    rank_by_path: dict[str, tuple[int, str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        stem = name.split(".", 1)[0].lower()
        if stem in DOCUMENTS:
            rank = DOCUMENTS.index(stem)
            if folder not in rank_by_path or (rank, path) < rank_by_path[folder]:
                rank_by_path[folder] = (rank, path)
    return {folder: path for folder, (_, path) in rank_by_path.items()}


class Modules:
    """The folders of some projects, made once and asked often. Roots are none of them."""

    def __init__(self, paths: Sequence[str], projects: Sequence[int]) -> None:
        """`paths` are relative and posix; a file's code is its place, as in `projects`."""
        self._files: Counter[Folder] = Counter()
        self._document: dict[Folder, int] = {}
        self._folder: dict[int, str] = {}
        self._by_name: dict[str, list[Folder]] = {}
        of: dict[int, dict[str, int]] = {}
        for code, (path, project) in enumerate(zip(paths, projects, strict=True)):
            of.setdefault(project, {})[path] = code
            folder = path.rpartition("/")[0]
            while folder:
                self._files[project, folder] += 1
                folder = folder.rpartition("/")[0]
        for project, codes in of.items():
            for folder, path in documents(codes).items():
                if folder:
                    self._document[project, folder] = codes[path]
                    self._folder[codes[path]] = folder
        for location in self._files:
            self._by_name.setdefault(location[1].rpartition("/")[2].lower(), []).append(location)

    def document(self, folder: Folder) -> int | None:
        """The code of a folder's document."""
        return self._document.get(folder)

    def documented(self, code: int) -> str | None:
        """The folder that a file is the document of."""
        return self._folder.get(code)

    def files(self, folder: Folder) -> int:
        """How many files are in a folder and those in it."""
        return self._files[folder]

    def named(self, names: Iterable[tuple[str, str, float]]) -> dict[Folder, float]:
        """The folders that `names` mean: (text, kind, weight) with kind path or module."""
        folders: dict[Folder, float] = {}
        for text, kind, weight in names:
            if kind in ("path", "module"):
                name = text.strip("/").lower()
                path = name.replace(".", "/") if kind == "module" else name
                candidates = self._by_name.get(path.rpartition("/")[2], [])
                same_folders = [folder for folder in candidates if folder[1].lower() == path]
                fits = same_folders or [
                    folder for folder in candidates if folder[1].lower().endswith("/" + path)
                ]
                for folder in fits if len(fits) <= AMBIGUOUS_FOLDERS else []:
                    folders[folder] = max(folders.get(folder, 0.0), weight)
        return folders
