"""Indexes a project: files in sections, the graph, the history; each time only what changed.

Files are written in transactions of a few: what is written stays, however a run ends, and the next
one goes on from there. Two runs at one time write nothing twice. Vectors come after the rows, so
that words are found at once. No file of the project is ever changed, and a project that is removed
meanwhile stays removed.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.calls.progress import Progress, no_progress
from anaphora.errors import EmbeddingError, InvalidInput, NotFound
from anaphora.features.projects.indexing.file_sync import (
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
from anaphora.features.projects.indexing.git_history import GitHistory, read_history
from anaphora.features.projects.indexing.graph import IndexServices, sync_files, sync_graph
from anaphora.features.projects.notes import NoteLinker
from anaphora.features.projects.store.rows import (
    FileRow,
    HistoryRow,
    ProjectRow,
    SectionRow,
    SectionVector,
)
from anaphora.features.projects.values import IndexReport
from anaphora.index.backlog import Backlog
from anaphora.language.names import composed
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.notes import Notes
    from anaphora.features.projects.store.store import Projects

# Commits of one transaction.
_COMMITS: Final = 1_000
# If files came or went, the whole graph is updated during a question up to this many files.
_WHOLE_AT_ONCE: Final = 300
# What a refresh takes in; more is left for a whole pass, because a question waits for it.
_REFRESHED: Final = 200


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """The result of a refresh. `left` are changes that need a whole pass.

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
    """The cached files of a project, valid for one version of the database."""

    version: int
    row: ProjectRow
    root: Path
    stamp: tuple[int, int]
    files: dict[str, FileRow]
    states: dict[str, FileState]


class ProjectIndexer:
    """Indexes the projects of one namespace. Safe to share between threads.

    `clock` gives the present, aware; `ids` new ids; `wall` nanoseconds since 1970. `note_folder`
    notes where a project (its id) lies, `question` asks of a new folder whether it is a known one.
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
        note_folder: Callable[[str, str], None] = lambda _project, _root: None,
        question: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.note_folder = note_folder
        self._question = question
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
        """Bring the database in line with the folder `root`.

        `progress` is called with "files", "graph" or "vectors", how many are done, and of how many.
        Raises InvalidInput for a folder that is not there or a name that another project has,
        NotFound when the project is removed meanwhile, StoreError and its kinds: what was written
        until then stays. An embedder that fails is in `degraded`, and `pending` counts on.
        """
        began = time.perf_counter()
        folder = project_folder(root)
        tell = progress or no_progress
        project = self._register(folder, name)
        degradations: tuple[Degraded, ...] = ()
        if project.indexed_at is None and (question := self._question(project.root)):
            degradations = (Degraded("project", question),)
        self.note_folder(project.id, project.root)
        history = read_history(folder, project.head)
        files = self._projects.files(project.id)
        times: dict[str, datetime] = {}
        for commit in history.commits if history is not None else ():
            for path in commit.files:
                times.setdefault(path, commit.at)
        sync = FileSync(self._services, project, folder, files, times)
        started_at = self._services.wall()
        sync.write_changes(sync.find_changes(), tell)
        commits = self._write_history(sync, history)
        self._sync_graph(sync, tell)
        self._finish(sync, history, started_at)
        try:
            if embed:
                self.fill_vectors(project.id, progress=tell)
        except EmbeddingError as error:
            degradations = (*degradations, Degraded("vectors", str(error)))
        return self._make_report(sync, commits, degradations, time.perf_counter() - began)

    def refresh(self, project: str) -> RefreshReport:
        """Take in files that changed, came or went since they were read, by their state alone.

        Quick where nothing did. Makes no vectors. NotFound when there is no such project.
        """
        with self._lock:
            cached_files = self._load_known(project)
            root, started_at = cached_files.root, self._services.wall()
            needs_walk = folders_changed(cached_files.row.folders, root)
            todo, missing = (
                ([], []) if needs_walk else changed_files(root, cached_files.states.values())
            )
            if not (needs_walk or todo or missing):
                return RefreshReport(behind=cached_files.row.stale)
            if not root.is_dir():
                return RefreshReport(missing=True)
            files = dict(cached_files.files)
            sync = FileSync(self._services, cached_files.row, root, files)
            if needs_walk:
                todo = sync.find_changes()
            else:
                sync.missing = {path: files[path] for path in missing}
            if len(todo) + len(sync.missing) > _REFRESHED:
                return RefreshReport(left=len(todo) + len(sync.missing))
            sync.write_changes(todo, no_progress)
            counts = sync.counts
            is_moved = sync.reshaped or any(
                counts[kind] for kind in ("added", "removed", "renamed")
            )
            is_behind = sync.project.stale
            if is_moved or sync.touched:
                # What the changed files say goes in at once. What others say of files that came or
                # went takes a look at all of them: in a large project that is left for later.
                known = self._load_known(sync.project.id)
                # A run that did not end left more behind it than this one has touched.
                is_behind = is_moved or sync.project.stale
                if is_behind and (sync.renames or len(known.files) <= _WHOLE_AT_ONCE):
                    self._sync_graph(sync, no_progress)
                    is_behind = False
                else:
                    rows, only = list(known.files.values()), frozenset(sync.touched)
                    gone = sync.gone_texts
                    sync_files(self._services, known.row, rows, only, gone, complete=not is_behind)
            if is_moved or needs_walk:
                self._finish(sync, None, started_at)
            return RefreshReport(
                counts["added"] + counts["renamed"],
                counts["changed"],
                counts["removed"],
                behind=is_behind,
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
        rows = self._projects.lacking_vector(self._embedder.name, section_ids)
        return self._backlog.attach(rows) if rows else 0

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

    def _register(self, root: Path, name: str | None) -> ProjectRow:
        """The project of this folder, made, moved or given another name if need be."""
        root_text = str(root)
        moved_project = self._projects.moved(root_text)
        with self._projects.change() as work:
            row = work.with_root(root_text)
            if row is None and moved_project is not None:
                row = replace(work.project(moved_project.id), root=root_text)
                work.change_project(row)
            name = None if name is None else composed(name)
            if row is not None and name in (None, composed(row.name)):
                return row
            names = {
                composed(project.name)
                for project in self._projects.rows()
                if row is None or project.id != row.id
            }
            if name is not None and (not name.strip() or name in names):
                raise InvalidInput("name", name, "must be a name that no other project has")
            if name is None:
                # The folder's name, with the one above it or a number where that is taken.
                base_name = root.name or "project"
                numbered_names = (f"{base_name} {number}" for number in itertools.count(2))
                candidates = itertools.chain(
                    (base_name, f"{root.parent.name}/{base_name}"), numbered_names
                )
                name = next(candidate for candidate in candidates if candidate not in names)
            if row is None:
                row = ProjectRow(self._services.ids(), name, root_text, self._services.clock())
                work.add_project(row)
            else:
                row = replace(row, name=name)
                work.change_project(row)
            return row

    def _write_history(self, sync: FileSync, history: GitHistory | None) -> int:
        """Write commits and renames into history; how many commits are new."""
        if history is None:
            return 0
        project, ids = sync.project.id, self._services.ids
        subjects = {commit.id: commit.subject for commit in history.commits}
        commits = [
            HistoryRow(ids(), project, "commit", commit.at, commit.subject, commit.id, commit.files)
            for commit in history.commits
        ]
        renames = [
            HistoryRow(
                ids(),
                project,
                "rename",
                rename.at,
                subjects.get(rename.commit, ""),
                rename.commit,
                (rename.old, rename.new),
            )
            for rename in history.renames
        ]
        new_count = sum(
            self._add_history(project, commits[at : at + _COMMITS])
            for at in range(0, len(commits), _COMMITS)
        )
        if renames:
            self._add_history(project, renames)
        # The oldest first: what a path became last is what holds.
        sync.renames[:0] = reversed(history.renames)
        return new_count

    def _add_history(self, project: str, rows: Sequence[HistoryRow]) -> int:
        with self._projects.change() as work:
            work.mark_stale(project)
            return work.add_history(rows)

    def _sync_graph(self, sync: FileSync, tell: Progress) -> None:
        """Bring the graph in line with the files, where they or their names have changed."""
        project = self._projects.row(sync.project.id)
        if not (project.stale or sync.renames):
            return
        tell("graph", 0, 1)
        sync_graph(self._services, project, sync.renames, frozenset(sync.known))
        tell("graph", 1, 1)

    def _finish(self, sync: FileSync, history: GitHistory | None, started: int) -> None:
        """Record how far the sync came, if that is new."""
        stored_row = self._projects.row(sync.project.id)
        row = replace(
            stored_row,
            head=history.head if history is not None and history.head else stored_row.head,
            folders=folder_times(sync.root, sync.folders or stored_row.folders, started),
        )
        if row == stored_row and stored_row.indexed_at is not None and not sync.touched:
            return
        with self._projects.change() as work:
            current_row = work.project(row.id)
            work.change_project(
                replace(
                    current_row,
                    head=row.head,
                    folders=row.folders,
                    indexed_at=self._services.clock(),
                )
            )

    def _make_report(
        self, sync: FileSync, commits: int, degraded: tuple[Degraded, ...], seconds: float
    ) -> IndexReport:
        project = sync.project
        counted_project = next(
            (
                project_info
                for project_info in self._projects.list()
                if project_info.id == project.id
            ),
            None,
        )
        if counted_project is None:
            raise NotFound("project", project.name)
        entities, relations = self._graph.counts(project.id)
        # Code is cut by lines if its parser is not installed.
        files = self._load_known(project.id).files.values()
        languages = {str(file.language) for file in files if file.parser > BY_LINES}
        if languages:
            reason = (
                f"{', '.join(sorted(languages))} by lines instead of functions: there are no "
                "parsers of them for this Python"
            )
            degraded = (Degraded("code", reason), *degraded)
        return IndexReport(
            project=project.id,
            name=counted_project.name,
            root=counted_project.root,
            files=counted_project.files,
            sections=counted_project.sections,
            entities=entities,
            relations=relations,
            **sync.counts,
            commits=commits,
            pending=self.pending(project.id),
            seconds=seconds,
            skipped=tuple(sync.skipped),
            redacted=tuple(sync.redacted),
            degraded=degraded,
        )

    def _load_known(self, project: str) -> _KnownFiles:
        """The stored project and its files, read again if the database has changed."""
        version = self._projects.version()
        cached_files = self._known_files.get(project)
        if cached_files is not None and cached_files.version == version:
            return cached_files
        row, stamp = self._projects.row(project), self._projects.last_file(project)
        root = Path(row.root)
        if cached_files is None or cached_files.root != root:
            cached_files = self._load_all(row, stamp)
        elif cached_files.stamp == stamp:
            cached_files = replace(cached_files, version=version, row=row)
        else:
            # The changed files alone are read, unless some were removed.
            newer = self._projects.files(row.id, since=cached_files.stamp[0])
            ids = {file.id for file in newer.values()}
            files = {path: file for path, file in cached_files.files.items() if file.id not in ids}
            files.update(newer)
            if len(files) != stamp[1]:
                cached_files = self._load_all(row, stamp)
            else:
                states = {
                    path: state for path, state in cached_files.states.items() if path in files
                }
                states.update(known_states(cached_files.root, newer))
                cached_files = _KnownFiles(-1, row, cached_files.root, stamp, files, states)
        cached_files = self._known_files[project] = replace(cached_files, version=version)
        return cached_files

    def _load_all(self, row: ProjectRow, stamp: tuple[int, int]) -> _KnownFiles:
        root, files = Path(row.root), self._projects.files(row.id)
        return _KnownFiles(-1, row, root, stamp, files, known_states(root, files))
