"""The folders that a client works in, and their indexing in the background.

Only folders named by the client are indexed: no home folder, nothing above one, and not the folder
that the server was started in.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from anaphora.errors import AnaphoraError
from anaphora.surfaces.mcp_server.tool import CallContext
from anaphora.system.environment import environment
from anaphora.system.incidents import report
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.surfaces.mcp_server.session import ServerSession

PATIENCE: Final = 1.2
"""Seconds that a call waits in total for a first indexing before it answers without it."""

_NOT_NAMED: Final = "is not indexed, as the client names no folders: anaphora project index "
_GOES_ON: Final = "is still being indexed: ask again in a moment"
_MARKS: Final = (
    ".git", ".hg", "pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml",
    "build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "CMakeLists.txt", "Makefile",
    "AGENTS.md", "CLAUDE.md",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenFolders:
    """The folders that a call is about. Those `named` by the client itself may be indexed."""

    folders: tuple[Path, ...] = ()
    named: bool = False


NOWHERE: Final = OpenFolders()


@dataclass(frozen=True, slots=True)
class _Job:
    """The indexing of a folder. `worded` is set once keywords are indexed; vectors follow."""

    done: Future[str | None]
    worded: threading.Event


class Folders:
    """The state of each folder. `session` runs the indexing."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._jobs: dict[Path, _Job] = {}

    def call_context(self, memory: Memory, opened: OpenFolders, *, indexing: bool) -> CallContext:
        """The project of a call; with `indexing`, new folders that the client named are indexed.

        That waits at most `PATIENCE` seconds and continues in the background. It is no error if a
        client has no folders, or folders without a project.
        """
        notices: list[Degraded] = []
        to_index = opened.folders if indexing and opened.named else ()
        end = monotonic() + PATIENCE
        begun = {folder: self._start_indexing(memory, folder) for folder in to_index}
        started_jobs = [job for job, is_new in begun.values() if job is not None and is_new]
        # A small project has its vectors by then, too.
        wait([job.done for job in started_jobs], timeout=PATIENCE)
        for folder, (job, _) in begun.items():
            if job is not None and not job.worded.wait(max(0.0, end - monotonic())):
                notices.append(Degraded("indexing", f"{folder} {_GOES_ON}"))
                continue
            with self._lock:
                latest = self._jobs.get(folder)
                if latest is not None and latest.done.done() and (why := latest.done.result()):
                    # Reported once: the next call tries it again.
                    notices.append(Degraded("indexing", why))
                    del self._jobs[folder]
        projects = _projects_around(memory, opened.folders)
        if indexing and not opened.named and not projects:
            notices = [
                Degraded("indexing", f"{folder} {_NOT_NAMED}{shlex.quote(str(folder))}")
                for folder in opened.folders
            ]
        # With several folders open, no single one is what the call is about.
        project = projects[0] if len(opened.folders) == 1 and projects else None
        return CallContext(project, tuple(notices))

    def _start_indexing(self, memory: Memory, folder: Path) -> tuple[_Job | None, bool]:
        """The indexing of a folder and whether it is new; None for an already known project."""
        with self._lock:
            if folder in self._jobs:
                return self._jobs[folder], False
            # Every question updates a known project by itself.
            if _projects_around(memory, (folder,)):
                return None, False
            worded_event = threading.Event()
            job = _Job(
                self._session.submit(lambda: _index(memory, folder, worded_event)), worded_event
            )
            self._jobs[folder] = job
            return job, True


def _index(memory: Memory, folder: Path, worded: threading.Event) -> str | None:
    """Index a folder; returns why that failed, or None."""
    try:
        memory.index_project(folder, embed=False)
        worded.set()
        memory.index_project(folder)
    except AnaphoraError as error:
        return f"{folder} was not indexed: {error}"
    except Exception as error:  # noqa: BLE001 - questions continue without this folder, and say so
        incident = report(environment(), error, surface="mcp", operation="indexing a folder")
        return f"{folder} was not indexed (incident {incident.id}). {incident.hint}"
    finally:
        worded.set()
    return None


def _projects_around(memory: Memory, folders: Iterable[Path]) -> list[str]:
    """The roots of known projects that contain these folders, the nearest for each."""
    roots = {Path(project.root): project.root for project in memory.projects()}
    nearest = [
        next((roots[path] for path in (folder, *folder.parents) if path in roots), None)
        for folder in folders
    ]
    return [root for root in nearest if root is not None]


def folder_of(uri: str, home: Path) -> Path | None:
    """The folder of a client's `file://` URI; None if it must not be indexed."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    text = unquote(parts.path)
    # file:///C:/work on Windows
    text = text[1:] if text[2:3] == ":" else text
    return _indexable(Path(text), home)


def started_in(folder: Path, home: Path) -> Path | None:
    """The project around the folder that the server was started in; None if there is none."""
    around = (folder, *folder.parents)
    for at in around:
        if _indexable(at, home) is None:
            return None
        if any((at / mark).exists() for mark in _MARKS):
            top = next((up for up in (at, *at.parents) if (up / ".git").exists()), at)
            return _indexable(top, home) or at.resolve()
    return None


def _indexable(folder: Path, home: Path) -> Path | None:
    try:
        path = folder.resolve(strict=True)
    except OSError:
        return None
    return path if path.is_dir() and path not in (home, *home.parents) else None
