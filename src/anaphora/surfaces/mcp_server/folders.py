"""The folders that a client works in, and their indexing in the background.

It indexes what the client named and nothing else: no home folder, nothing above one, and not the
folder that the server was started in, which nobody asked for.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from anaphora.core.environment import environment
from anaphora.core.incidents import report
from anaphora.errors import AnaphoraError
from anaphora.surfaces.mcp_server.calls import CallContext
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.surfaces.mcp_server.session import ServerSession

PATIENCE: Final = 1.2
"""Seconds that a call waits, in all, for a first indexing before it answers from what is there."""

_NOT_NAMED: Final = "is not indexed, as the client names no folders: anaphora project index "
_GOES_ON: Final = "is still being indexed: ask again in a moment"
_MARKS: Final = (
    ".git", ".hg", "pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml",
    "build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "CMakeLists.txt", "Makefile",
    "AGENTS.md", "CLAUDE.md",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenFolders:
    """The folders that a call is about; `named` by the client itself, so that they may be read."""

    folders: tuple[Path, ...] = ()
    named: bool = False


NOWHERE: Final = OpenFolders()


@dataclass(frozen=True, slots=True)
class _Job:
    """The indexing of a folder. `worded` is set once its words are found; vectors come after."""

    done: Future[str | None]
    worded: threading.Event


class Folders:
    """What has been done about each folder. `session` runs the indexing."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._jobs: dict[Path, _Job] = {}

    def call_context(self, memory: Memory, opened: OpenFolders, *, indexing: bool) -> CallContext:
        """The project of a call; with `indexing` folders that it is new to are read, if named.

        That takes at most `PATIENCE` seconds, and goes on behind. The folders of a client that has
        none, or that are no project, are no error.
        """
        if indexing and opened.named:
            return self._indexed(memory, opened.folders)
        known = _known(memory, opened.folders)
        told = [
            Degraded("indexing", f"{folder} {_NOT_NAMED}{shlex.quote(str(folder))}")
            for folder in (() if known or not indexing else opened.folders)
        ]
        return CallContext(known[0] if len(opened.folders) == 1 and known else None, tuple(told))

    def _indexed(self, memory: Memory, folders: Sequence[Path]) -> CallContext:
        end = monotonic() + PATIENCE
        begun = {folder: self._begun(memory, folder) for folder in folders}
        fresh = [job for job, new in begun.values() if job is not None and new]
        # A small project has its vectors by then too.
        wait([job.done for job in fresh], timeout=PATIENCE)
        told: list[Degraded] = []
        for folder, (job, _) in begun.items():
            if job is not None and not job.worded.wait(max(0.0, end - monotonic())):
                told.append(Degraded("indexing", f"{folder} {_GOES_ON}"))
            elif why := self._failed(folder):
                told.append(Degraded("indexing", why))
        known = _known(memory, folders)
        # With several folders open, no single one is what the call is about.
        return CallContext(known[0] if len(folders) == 1 and known else None, tuple(told))

    def _failed(self, folder: Path) -> str | None:
        """Why a folder could not be indexed, told once: the next call tries it again."""
        with self._lock:
            job = self._jobs.get(folder)
            why = job.done.result() if job is not None and job.done.done() else None
            if why:
                del self._jobs[folder]
            return why

    def _begun(self, memory: Memory, folder: Path) -> tuple[_Job | None, bool]:
        """The indexing of a folder and whether it is new; None when it was known before."""
        with self._lock:
            if folder in self._jobs:
                return self._jobs[folder], False
            # A project that is known is brought up to date by every question of its own accord.
            if _known(memory, (folder,)):
                return None, False
            worded = threading.Event()
            job = _Job(self._session.submit(lambda: _index(memory, folder, worded)), worded)
            self._jobs[folder] = job
            return job, True


def _index(memory: Memory, folder: Path, worded: threading.Event) -> str | None:
    """Index a folder; why that failed, if it did."""
    try:
        memory.index_project(folder, embed=False)
        worded.set()
        memory.index_project(folder)
    except AnaphoraError as error:
        return f"{folder} was not indexed: {error}"
    except Exception as error:  # noqa: BLE001 - questions go on without this folder, and say so
        incident = report(environment(), error, surface="mcp", operation="indexing a folder")
        return f"{folder} was not indexed (incident {incident.id}). {incident.hint}"
    finally:
        worded.set()
    return None


def _known(memory: Memory, folders: Iterable[Path]) -> list[str]:
    """The roots of known projects that hold these folders, the nearest for each."""
    roots = {Path(project.root): project.root for project in memory.projects()}
    found = [
        next((roots[at] for at in (folder, *folder.parents) if at in roots), None)
        for folder in folders
    ]
    return [root for root in found if root is not None]


def folder_of(uri: str, home: Path) -> Path | None:
    """The folder behind a client's `file://` URI; None for what must not be indexed."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    text = unquote(parts.path)
    # file:///C:/work on Windows
    text = text[1:] if text[2:3] == ":" else text
    return _allowed(Path(text), home)


def started_in(folder: Path, home: Path) -> Path | None:
    """The project around the folder that the server was started in; None when it is in none."""
    around = (folder, *folder.parents)
    for at in around:
        if _allowed(at, home) is None:
            return None
        if any((at / mark).exists() for mark in _MARKS):
            top = next((up for up in (at, *at.parents) if (up / ".git").exists()), at)
            return _allowed(top, home) or at.resolve()
    return None


def _allowed(folder: Path, home: Path) -> Path | None:
    try:
        place = folder.resolve(strict=True)
    except OSError:
        return None
    return place if place.is_dir() and place not in (home, *home.parents) else None
