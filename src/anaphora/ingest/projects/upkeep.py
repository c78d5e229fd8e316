"""Changes of projects and notes, with their vectors and the index of sections."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.core.progress import Progress
from anaphora.errors import EmbeddingError, NotFound, StoreError
from anaphora.index.maintenance import Background
from anaphora.values.conversations import Degraded
from anaphora.values.memories import Forgotten
from anaphora.values.projects import IndexReport

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.ingest.memories import Survivors
    from anaphora.ingest.notes import NoteWriter
    from anaphora.ingest.projects.indexing import ProjectIndexer
    from anaphora.store.projects.store import Projects

_GROUP = 64
"""Texts between two looks at whether the home is being closed."""


@dataclass(frozen=True, slots=True)
class ProjectUpkeep:
    """Changes projects and notes of one namespace with all that is derived from them."""

    projects: Projects
    indexing: ProjectIndexer
    notes: NoteWriter
    sections: SectionIndex
    worker: Background = field(default_factory=partial(Background, "anaphora-sections"))

    def clean(self) -> None:
        """Take secrets that an older version has kept of projects out of every file."""
        if self.indexing.clean():
            self._purge()

    def index(
        self, root: str | Path, name: str | None, progress: Progress | None, *, embed: bool
    ) -> IndexReport:
        """Index a project and let the index know it; see `Memory.index_project`."""
        report = self.indexing.index(root, name=name, progress=progress, embed=embed)
        if embed:
            self.notes.fill_vectors()
        self.sections.sync()
        self.sections.settle()
        return report

    def refresh(self, project: str) -> tuple[Degraded, ...]:
        """Take in what changed since the last question; what could not be, in words."""
        try:
            done = self.indexing.refresh(project)
        except NotFound:
            return (Degraded("project", "it was removed meanwhile"),)
        except StoreError as error:
            return (Degraded("project", f"changed files were not indexed: {error}"),)
        if done.added or done.changed or done.behind:
            # Words answer at once; vectors of what changed come behind.
            self.begin_filling()
        found: list[Degraded] = []
        if done.behind:
            reason = "what other files have to do with those that came or went is being looked up"
            found.append(Degraded("graph", reason))
        if done.missing:
            found.append(Degraded("project", "its folder does not exist; the last index is used"))
        if done.left:
            changed = f"{done.left} files changed since it was indexed: index it again"
            found.append(Degraded("project", changed))
        return tuple(found)

    def remove(self, project: str) -> int:
        """Forget a project; see `Memory.remove_project`."""
        gone = self.projects.remove(self.projects.find(project).id)
        self._purge()
        return gone

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
        gone = self.notes.forget(note_id, soft=soft)
        if not gone.ids or soft:
            return named(gone, ())
        self.sections.sync()
        self.sections.settle()
        return named(gone, survivors(gone.texts) if survivors is not None else ())

    def begin_filling(self) -> None:
        """Begin to embed what has no vector yet, in the background."""
        self.worker.begin(self._fill_quietly)

    def fill_vectors(self) -> None:
        """Embed what has no vector yet, of sections and notes. Waits for the model."""
        self.indexing.complete_graphs()
        while not self.worker.stopping.is_set():
            if not self.indexing.fill_vectors(limit=_GROUP):
                break
        self.notes.fill_vectors()
        self.sections.sync()
        self.sections.mend()

    def close(self) -> None:
        """Wait for the vectors that are being made in the background."""
        self.worker.stop()

    def _fill_quietly(self) -> None:
        try:
            self.fill_vectors()
        except (EmbeddingError, StoreError):
            # The next question meets the same trouble, and its answer says so.
            return

    def _purge(self) -> None:
        """Take the words of what is gone from truth out of every file of the home, too."""
        self.projects.truth.scrub()
        self.sections.purge()
