"""Changes of projects and notes, with their vectors and the index of sections."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.calls.progress import Progress, labelled
from anaphora.errors import EmbeddingError, NotFound, StoreError
from anaphora.features.projects.values import IndexReport
from anaphora.index.backlog import GROUP
from anaphora.index.maintenance import Background
from anaphora.values.conversations import Degraded
from anaphora.values.memories import Forgotten

if TYPE_CHECKING:
    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.indexing.indexing import ProjectIndexer
    from anaphora.features.projects.notes import NoteWriter
    from anaphora.features.projects.store.store import Projects
    from anaphora.ingest.memories import Survivors

_GROUP = 64
"""Texts that are embedded between two checks for sections that questions found, and the most that
are embedded before `index` returns."""

_MOST_WANTED = 2_000


class _WantedSections:
    """Sections without a vector that questions found, those of the last question first."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._lock = threading.Lock()

    def add(self, ids: Sequence[str]) -> None:
        with self._lock:
            self._ids = list(dict.fromkeys((*ids, *self._ids)))[:_MOST_WANTED]

    def take(self) -> list[str]:
        with self._lock:
            group, self._ids = self._ids[:_GROUP], self._ids[_GROUP:]
        return group


@dataclass(frozen=True, slots=True)
class ProjectUpkeep:
    """Changes projects and notes of one namespace with all that is derived from them."""

    projects: Projects
    indexing: ProjectIndexer
    notes: NoteWriter
    sections: SectionIndex
    worker: Background = field(default_factory=partial(Background, "anaphora-sections"))
    _wanted: _WantedSections = field(default_factory=_WantedSections)
    # Two that fill would embed the same texts.
    _filling: threading.Lock = field(default_factory=threading.Lock)

    def index(
        self, root: str | Path, name: str | None, progress: Progress | None, *, embed: bool
    ) -> IndexReport:
        """Index a project, so that words find it, then begin to make its vectors.

        See `Memory.index_project`.
        """
        report = self.indexing.index(root, name=name, progress=progress, embed=False)
        self.sections.sync(labelled(progress, "words"))
        self.sections.settle()
        if not embed:
            return report
        # Vectors of few texts are made at once, those of many in the background.
        try:
            self._fill_group(report.project)
        except EmbeddingError as error:
            degradations = (*report.degraded, Degraded("vectors", str(error)))
            return replace(report, degraded=degradations)
        pending = self.indexing.pending(report.project)
        if pending:
            self.begin_filling()
        else:
            self.notes.fill_vectors(_GROUP)
            self.sections.sync()
        return replace(report, pending=pending)

    def refresh(self, project: str) -> tuple[Degraded, ...]:
        """Take in what changed since the last question; what could not be, in words."""
        try:
            report = self.indexing.refresh(project)
        except NotFound:
            return (Degraded("project", "it was removed meanwhile"),)
        except StoreError as error:
            return (Degraded("project", f"changed files were not indexed: {error}"),)
        if report.added or report.changed or report.behind:
            # Words answer at once; vectors of what changed come behind.
            self.begin_filling()
        degradations: list[Degraded] = []
        if report.behind:
            reason = "what other files have to do with those that came or went is being looked up"
            degradations.append(Degraded("graph", reason))
        if report.missing:
            degradations.append(
                Degraded("project", "its folder does not exist; the last index is used")
            )
        if report.left:
            changed_message = f"{report.left} files changed since it was indexed: index it again"
            degradations.append(Degraded("project", changed_message))
        return tuple(degradations)

    def remove(self, project: str) -> int:
        """Forget a project; see `Memory.remove_project`."""
        project_id = self.projects.find(project).id
        removed_project = self.projects.remove(project_id)
        self.indexing.note_folder(project_id, "")
        # The words of deleted rows leave every file of the home, too.
        self.projects.truth.scrub(anew=True)
        self.sections.purge()
        return removed_project

    def forget_note(
        self,
        note_id: str,
        *,
        soft: bool = False,
        dry_run: bool = False,
        survivors: Survivors | None = None,
    ) -> Forgotten:
        """Forget a note; when this returns its words have left the index's files too.

        `survivors` looks for what still holds them. With `dry_run` nothing is changed.
        """
        from anaphora.ingest.memories import named

        if dry_run:
            would = self.notes.would_forget(note_id)
            return named(would, survivors(would.texts) if survivors is not None else ())
        forgotten_records = self.notes.forget(note_id, soft=soft)
        if not forgotten_records.ids or soft:
            return named(forgotten_records, ())
        self.sections.sync()
        self.sections.settle()
        return named(
            forgotten_records, survivors(forgotten_records.texts) if survivors is not None else ()
        )

    def begin_filling(self, first: Sequence[str] = ()) -> None:
        """Begin to embed what has no vector yet, in the background; `first` (sections) before."""
        self._wanted.add(first)
        self.worker.begin(self._fill_quietly)

    def fill_vectors(self, progress: Progress | None = None, *, at_once: int = GROUP) -> None:
        """Embed what has no vector yet, of sections and notes. Waits for the model.

        Between so many `at_once` it looks at what questions found, and whether the home is closed.
        """
        self.indexing.complete_graphs()
        total, done_count = self.indexing.pending(), 0
        while not self.worker.stopping.is_set():
            count = self._fill_group(limit=at_once)
            if not count:
                break
            done_count += count
            if progress is not None:
                progress("sections", min(done_count, total), total)
        self.notes.fill_vectors()
        self.sections.sync()
        self.sections.mend()

    def _fill_group(self, project: str | None = None, limit: int = _GROUP) -> int:
        """Embed some sections: those that questions found, else any; how many texts that were."""
        with self._filling:
            while section_ids := self._wanted.take():
                if count := self.indexing.fill_sections(section_ids):
                    return count
            return self.indexing.fill_vectors(project, limit=limit)

    def close(self) -> None:
        """Wait for the vectors that are being made in the background."""
        self.worker.stop()

    def _fill_quietly(self) -> None:
        try:
            self.fill_vectors(at_once=_GROUP)
        except (EmbeddingError, StoreError):
            # The next question meets the same trouble, and its answer says so.
            return
