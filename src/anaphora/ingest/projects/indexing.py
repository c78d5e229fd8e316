"""Indexes a project: files in sections, the graph, the history; each time only what changed.

Files are written in transactions of a few: what is written stays, however a run ends, and the next
one goes on from there. Two runs at one time write nothing twice. Vectors come after the rows, so
that words are found at once. No file of the project is ever changed, and a project that is removed
meanwhile stays removed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.core.names import composed
from anaphora.core.progress import Progress, no_progress
from anaphora.errors import EmbeddingError, InvalidInput, NotFound
from anaphora.index.backlog import Backlog
from anaphora.ingest.notes import NoteLinker
from anaphora.ingest.projects.file_sync import (
    BY_LINES,
    FileState,
    FileSync,
    changed_files,
    embedded_text,
    folder_times,
    folders_changed,
    known_states,
    project_folder,
)
from anaphora.ingest.projects.git_history import GitHistory, read_history
from anaphora.ingest.projects.graph import IndexServices, sync_files, sync_graph
from anaphora.store.projects.rows import FileRow, HistoryRow, ProjectRow, SectionRow, SectionVector
from anaphora.values.conversations import Degraded
from anaphora.values.projects import IndexReport

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.notes import Notes
    from anaphora.store.projects.store import Projects

# Commits of one transaction.
_COMMITS: Final = 1_000
# Files whose relations are all looked at while a question waits, where some came or went.
_WHOLE_AT_ONCE: Final = 300
# What a refresh takes in; more is left for a whole pass, because a question waits for it.
_REFRESHED: Final = 200


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh took in. `left` are changes that a whole pass has to take in.

    `missing` says that the folder of the project is not there (any more): nothing was changed.
    `behind` says that its graph does not yet tell what others say of files that came or went.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    left: int = 0
    missing: bool = False
    behind: bool = False


@dataclass(slots=True)
class _KnownFiles:
    """What is known of a project's files, as long as truth has the same."""

    version: int
    row: ProjectRow
    root: Path
    stamp: tuple[int, int]
    files: dict[str, FileRow]
    states: dict[str, FileState]


class ProjectIndexer:
    """Indexes the projects of one namespace. Safe to share between threads.

    `clock` gives the present, aware; `ids` new ids; `wall` nanoseconds since 1970.
    """

    def __init__(
        self,
        projects: Projects,
        graph: Graph,
        notes: Notes,
        embedder: EmbedderService,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._projects = projects
        self._graph = graph
        self._embedder = embedder
        linker = NoteLinker(graph, notes, clock=clock, ids=ids)
        self._services = IndexServices(projects, graph, linker, clock, ids, wall)
        self._known_files: dict[str, _KnownFiles] = {}
        self._backlog: Backlog[SectionRow] = Backlog(
            embedder,
            lambda row: row.text_hash,
            embedded_text,
            self._put_vectors,
        )
        self._lock = threading.Lock()

    def index(
        self,
        root: str | Path,
        *,
        name: str | None = None,
        progress: Progress | None = None,
        embed: bool = True,
    ) -> IndexReport:
        """Bring truth in line with the folder `root`.

        `progress` is called with "files", "graph" or "vectors", how many are done, and of how many.
        Raises InvalidInput for a folder that is not there or a name that another project has,
        NotFound when the project is removed meanwhile, StoreError and its kinds: what was written
        until then stays. An embedder that fails is in `degraded`, and `pending` counts on.
        """
        began = time.perf_counter()
        place = project_folder(root)
        tell = progress or no_progress
        project = self._registered(place, name)
        history = read_history(place, project.head)
        known = self._projects.files(project.id)
        sync = FileSync(self._services, project, place, known, _committed(history))
        started = self._services.wall()
        sync.write_changes(sync.find_changes(), tell)
        commits = self._write_history(sync, history)
        self._graph_of(sync, tell)
        self._finish(sync, history, started)
        degraded: tuple[Degraded, ...] = ()
        try:
            if embed:
                self.fill_vectors(project.id, progress=tell)
        except EmbeddingError as error:
            degraded = (Degraded("vectors", str(error)),)
        return self._report(sync, commits, degraded, time.perf_counter() - began)

    def refresh(self, project: str) -> RefreshReport:
        """Take in files that changed, came or went since they were read, by their state alone.

        Quick where nothing did. Makes no vectors. NotFound when there is no such project.
        """
        with self._lock:
            known = self._known(project)
            root, started = known.root, self._services.wall()
            walked = folders_changed(known.row.folders, root)
            todo, gone = ([], []) if walked else changed_files(root, known.states.values())
            if not (walked or todo or gone):
                return RefreshReport(behind=known.row.stale)
            if not root.is_dir():
                return RefreshReport(missing=True)
            files = dict(known.files)
            sync = FileSync(self._services, known.row, root, files)
            if walked:
                todo = sync.find_changes()
            else:
                sync.missing = {path: files[path] for path in gone}
            if len(todo) + len(sync.missing) > _REFRESHED:
                return RefreshReport(left=len(todo) + len(sync.missing))
            sync.write_changes(todo, no_progress)
            counts = sync.counts
            moved = sync.reshaped or any(counts[one] for one in ("added", "removed", "renamed"))
            behind = self._graph_of_few(sync, moved=moved)
            if moved or walked:
                self._finish(sync, None, started)
            return RefreshReport(
                counts["added"] + counts["renamed"],
                counts["changed"],
                counts["removed"],
                behind=behind,
            )

    def complete_graphs(self) -> None:
        """Make the graphs anew that are behind the files of their projects.

        Raises StoreError. A project that goes meanwhile is none.
        """
        for row in self._projects.rows():
            if row.stale:
                with suppress(NotFound):
                    sync_graph(self._services, row)

    def fill_vectors(
        self,
        project: str | None = None,
        *,
        limit: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Make vectors of texts that have none, at most `limit`; returns how many were made.

        Each text is embedded once, however many sections have it. Waits for the model; raises
        EmbeddingError when it cannot be loaded. A text that cannot be embedded hides no other.
        """
        name, tell = self._embedder.name, progress or no_progress
        total = self.pending(project) if progress is not None else 0
        return self._backlog.fill(
            lambda after, room: self._projects.without_vector(
                name, project=project, limit=room, after=after
            ),
            limit,
            lambda done, _: tell("vectors", min(done, total), max(done, total)),
            lambda row: self._projects.cursor_of(row.text_hash),
        )[0]

    def fill_sections(self, section_ids: Sequence[str]) -> int:
        """Make the vectors that these sections lack, in this order; how many texts got theirs."""
        lacking = self._projects.lacking_vector(self._embedder.name, section_ids)
        return self._backlog.attach(lacking) if lacking else 0

    def pending(self, project: str | None = None) -> int:
        """How many sections, of one project or of all, have no vector yet."""
        return self._projects.pending(self._embedder.name, project)

    def _put_vectors(self, made: Sequence[tuple[SectionRow, Vectors]]) -> int:
        rows = [
            SectionVector(row.text_hash, part, half.tobytes())
            for row, vectors in made
            for part, half in enumerate(vectors.astype("<f2"))
        ]
        return self._projects.put_vectors(self._embedder.name, rows)

    def _registered(self, root: Path, name: str | None) -> ProjectRow:
        """The project of this folder, made or given another name if need be."""
        own = str(root)
        with self._projects.change() as work:
            row = work.with_root(own)
            name = None if name is None else composed(name)
            if row is not None and name in (None, composed(row.name)):
                return row
            taken = {composed(one.name) for one in self._projects.rows() if one.root != own}
            if name is not None and (not name.strip() or name in taken):
                raise InvalidInput("name", name, "must be a name that no other project has")
            chosen = name or _free_name(root, taken)
            if row is None:
                row = ProjectRow(self._services.ids(), chosen, own, self._services.clock())
                work.add_project(row)
            else:
                row = replace(row, name=chosen)
                work.change_project(row)
            return row

    def _write_history(self, sync: FileSync, history: GitHistory | None) -> int:
        """Write commits and renames into history; how many commits are new."""
        if history is None:
            return 0
        project, ids = sync.project.id, self._services.ids
        subjects = {one.id: one.subject for one in history.commits}
        commits = [
            HistoryRow(ids(), project, "commit", one.at, one.subject, one.id, one.files)
            for one in history.commits
        ]
        renames = [
            HistoryRow(
                ids(),
                project,
                "rename",
                one.at,
                subjects.get(one.commit, ""),
                one.commit,
                (one.old, one.new),
            )
            for one in history.renames
        ]
        new = sum(
            self._add_history(project, commits[at : at + _COMMITS])
            for at in range(0, len(commits), _COMMITS)
        )
        if renames:
            self._add_history(project, renames)
        # The oldest first: what a path became last is what holds.
        sync.renames[:0] = reversed(history.renames)
        return new

    def _add_history(self, project: str, rows: Sequence[HistoryRow]) -> int:
        with self._projects.change() as work:
            work.mark_stale(project)
            return work.add_history(rows)

    def _graph_of(self, sync: FileSync, tell: Progress) -> None:
        """Bring the graph in line with the files, where they or their names have changed."""
        project = self._projects.row(sync.project.id)
        if not (project.stale or sync.renames):
            return
        tell("graph", 0, 1)
        sync_graph(self._services, project, sync.renames, frozenset(sync.known))
        tell("graph", 1, 1)

    def _graph_of_few(self, sync: FileSync, *, moved: bool) -> bool:
        """The same after a few changes, while a question waits; whether some of it is still due.

        What the changed files say goes in at once. What others say of files that came or went
        takes a look at all of them: in a large project that is left for later.
        """
        if not (moved or sync.touched):
            return sync.project.stale
        known = self._known(sync.project.id)
        # A run that did not end left more behind it than this one has touched.
        whole = moved or sync.project.stale
        if whole and (sync.renames or len(known.files) <= _WHOLE_AT_ONCE):
            self._graph_of(sync, no_progress)
            return False
        files = list(known.files.values())
        only = frozenset(sync.touched)
        sync_files(self._services, known.row, files, only, sync.gone_texts, complete=not whole)
        return whole

    def _finish(self, sync: FileSync, history: GitHistory | None, started: int) -> None:
        """Record how far the sync came, if that is new."""
        known = self._projects.row(sync.project.id)
        row = replace(
            known,
            head=history.head if history is not None and history.head else known.head,
            folders=folder_times(sync.root, sync.folders or known.folders, started),
        )
        if row == known and known.indexed_at is not None and not sync.touched:
            return
        with self._projects.change() as work:
            now = work.project(row.id)
            work.change_project(
                replace(now, head=row.head, folders=row.folders, indexed_at=self._services.clock())
            )

    def _report(
        self, sync: FileSync, commits: int, degraded: tuple[Degraded, ...], seconds: float
    ) -> IndexReport:
        project = sync.project
        counted = next((one for one in self._projects.list() if one.id == project.id), None)
        if counted is None:
            raise NotFound("project", project.name)
        entities, relations = self._graph.counts(project.id)
        return IndexReport(
            project=project.id,
            name=counted.name,
            root=counted.root,
            files=counted.files,
            sections=counted.sections,
            entities=entities,
            relations=relations,
            **sync.counts,
            commits=commits,
            pending=self.pending(project.id),
            seconds=seconds,
            skipped=tuple(sync.skipped),
            redacted=tuple(sync.redacted),
            degraded=(*self._cut_by_lines(project.id), *degraded),
        )

    def _cut_by_lines(self, project: str) -> tuple[Degraded, ...]:
        """What to say of code that is cut by its lines, as its parser is not installed."""
        files = self._known(project).files.values()
        lacking = {str(one.language) for one in files if one.parser > BY_LINES}
        if not lacking:
            return ()
        reason = (
            f"{', '.join(sorted(lacking))} by lines instead of functions: their parsers are not "
            "installed (extra projects)"
        )
        return (Degraded("code", reason),)

    def _known(self, project: str) -> _KnownFiles:
        """What truth has of a project and its files, read again where truth has changed."""
        version = self._projects.version()
        known = self._known_files.get(project)
        if known is not None and known.version == version:
            return known
        row, stamp = self._projects.row(project), self._projects.last_file(project)
        root = Path(row.root)
        if known is None or known.root != root:
            known = self._all_files(row, stamp)
        elif known.stamp == stamp:
            known = replace(known, version=version, row=row)
        else:
            known = self._newer_files(known, row, stamp)
        known = self._known_files[project] = replace(known, version=version)
        return known

    def _all_files(self, row: ProjectRow, stamp: tuple[int, int]) -> _KnownFiles:
        root, files = Path(row.root), self._projects.files(row.id)
        return _KnownFiles(-1, row, root, stamp, files, known_states(root, files))

    def _newer_files(
        self, known: _KnownFiles, row: ProjectRow, stamp: tuple[int, int]
    ) -> _KnownFiles:
        """The files after some changed: those alone are read, unless some went."""
        newer = self._projects.files(row.id, since=known.stamp[0])
        ids = {one.id for one in newer.values()}
        files = {path: one for path, one in known.files.items() if one.id not in ids}
        files.update(newer)
        if len(files) != stamp[1]:
            return self._all_files(row, stamp)
        states = {path: state for path, state in known.states.items() if path in files}
        states.update(known_states(known.root, newer))
        return _KnownFiles(-1, row, known.root, stamp, files, states)


def _free_name(root: Path, taken: set[str]) -> str:
    """The folder's name, with the one above it or a number where that is taken."""
    name = root.name or "project"
    number = 2
    for one in (name, f"{root.parent.name}/{name}"):
        if one not in taken:
            return one
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"


def _committed(history: GitHistory | None) -> dict[str, datetime]:
    """When each path was committed last."""
    found: dict[str, datetime] = {}
    for commit in history.commits if history is not None else ():
        for path in commit.files:
            found.setdefault(path, commit.at)
    return found
