"""The modules of a project: its folders, the document of each, and which of them a focus names.

In: the paths of files with their projects; names as they were written. Out: folders with how surely
each is meant (0 … 1), their documents, how many files they hold. Pure; it reads no file.

A folder fits where whole components agree from its end: `shop` and `src/shop` are both `src/shop`,
unless there is a folder of just that path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

Folder = tuple[int, str]
"""A project's code, and the path of a folder in it."""

DOCUMENTS: Final = ("readme", "index", "__init__", "mod", "lib", "package-info")
"""Whose stem says that a file speaks for its folder, the first of them before the others."""

AMBIGUOUS: Final = 3
"""A name of more folders than this does not say which one is meant."""


def documents(paths: Iterable[str]) -> dict[str, str]:
    """The document of each folder that has one, by the folder; "" is the root."""
    found: dict[str, tuple[int, str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        stem = name.split(".", 1)[0].lower()
        if stem in DOCUMENTS:
            rank = DOCUMENTS.index(stem)
            if folder not in found or (rank, path) < found[folder]:
                found[folder] = (rank, path)
    return {folder: path for folder, (_, path) in found.items()}


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
            self._files.update((project, folder) for folder in _above(path))
        for project, codes in of.items():
            for folder, path in documents(codes).items():
                if folder:
                    self._document[project, folder] = codes[path]
                    self._folder[codes[path]] = folder
        for one in self._files:
            self._by_name.setdefault(one[1].rpartition("/")[2].lower(), []).append(one)

    def document(self, folder: Folder) -> int | None:
        """The code of a folder's document."""
        return self._document.get(folder)

    def documented(self, code: int) -> str | None:
        """The folder whose document a file is."""
        return self._folder.get(code)

    def files(self, folder: Folder) -> int:
        """How many files are in a folder and those in it."""
        return self._files[folder]

    def named(self, names: Iterable[tuple[str, str, float]]) -> dict[Folder, float]:
        """The folders that `names` mean: (text, kind, weight) with kind path or module."""
        found: dict[Folder, float] = {}
        for text, kind, weight in names:
            if kind in ("path", "module"):
                for folder in self._fitting(text.strip("/").lower(), kind):
                    found[folder] = max(found.get(folder, 0.0), weight)
        return found

    def _fitting(self, text: str, kind: str) -> list[Folder]:
        path = text.replace(".", "/") if kind == "module" else text
        some = self._by_name.get(path.rpartition("/")[2], [])
        same = [one for one in some if one[1].lower() == path]
        fits = same or [one for one in some if one[1].lower().endswith("/" + path)]
        return fits if len(fits) <= AMBIGUOUS else []


def _above(path: str) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
