"""A project with known answers, asked as its users ask: files in a folder, a home, recall.

In: a project's files, an embedder. Out: for a question, the primary targets of its package. The
files are written to a folder of their own that is no git checkout, so that no history tells the
answer; all have one date, so that none is more recent. Nothing of this stays.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from anaphora.api.memory import Memory
from anaphora.embed.base import Embedder
from anaphora.values.projects import IndexReport, Quality

BUDGET = 2000
"""Tokens of a package: what a user gets who does not say."""

_WRITTEN = 1_600_000_000
"""Seconds since 1970: long ago, as of most files of a project."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The primary targets of a package, best first, its label, and what it took.

    `seconds` is wall time; `tokens` the size of the package's text.
    """

    paths: tuple[str, ...]
    quality: Quality
    seconds: float
    tokens: int


class ProjectRoad:
    """One project in a home of its own. `close` removes both."""

    def __init__(self, files: Mapping[str, str], embedder: Embedder) -> None:
        """Write the files and index them, with their vectors."""
        self._folder = tempfile.TemporaryDirectory(prefix="anaphora-bench-")
        try:
            place = Path(self._folder.name)
            self._root = place / "project"
            _write(files, self._root)
            self._memory = Memory.open(place / "home", embedder=embedder, cache_size=0)
            self.indexed: IndexReport = self._memory.index_project(self._root)
            self._memory.ready()
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        """Let go of the home and of the disk."""
        self._memory.close()
        self._folder.cleanup()

    def ask(self, question: str, budget: int = BUDGET) -> Recalled:
        """What a package of at most `budget` tokens says where to look."""
        began = time.perf_counter()
        found = self._memory.recall_context(question, project=str(self._root), budget=budget)
        seconds = time.perf_counter() - began
        paths = tuple(target.path for target in found.primary_targets)
        return Recalled(paths, found.quality, seconds, found.tokens)


def _write(files: Mapping[str, str], root: Path) -> None:
    root.mkdir()
    for path, text in files.items():
        place = root / PurePosixPath(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "replace"))
        os.utime(place, (_WRITTEN, _WRITTEN))
    # Folders that have just changed would be looked through again with every question.
    for place in [root, *(one for one in root.rglob("*") if one.is_dir())]:
        os.utime(place, (_WRITTEN, _WRITTEN))
