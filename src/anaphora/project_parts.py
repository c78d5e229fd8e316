"""Project memory put together: what the context lane of one namespace is made of.

In: truth, the place of the index, the embedder. Out: `ProjectParts`. Everything is made at once and
opened with its first use, free of secrets. It holds no logic of recall or storage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import EmbeddingError, NotFound, StoreError
from anaphora.index.maintenance import Background
from anaphora.values.conversations import Check, Degraded
from anaphora.values.memories import Forgotten
from anaphora.values.projects import IndexReport

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.sections.index import SectionIndex
    from anaphora.ingest.memories import Survivors
    from anaphora.ingest.notes import NoteTaking
    from anaphora.ingest.projects.indexing import IndexProject
    from anaphora.recall.context.lane import ContextRecall
    from anaphora.recall.context.warm_up import WarmUpRecall
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.crypto.index import IndexSealer
    from anaphora.store.db.engine import Database
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.notes import Notes
    from anaphora.store.projects.store import Projects

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class ProjectParts:
    """What the context lane of one namespace works with."""

    projects: Projects
    graph: Graph
    notes: Notes
    sections: SectionIndex
    indexing: IndexProject
    taking: NoteTaking
    recall: ContextRecall
    warming: WarmUpRecall
    _worker: Background = field(default_factory=lambda: Background("anaphora-sections"))

    def index(
        self, root: str | Path, name: str | None, progress: Progress | None, *, embed: bool
    ) -> IndexReport:
        """Index a project and let the index know it; see `Memory.index_project`."""
        report = self.indexing.index(root, name=name, progress=progress, embed=embed)
        if embed:
            self.taking.fill_vectors()
        self.sections.sync()
        self.sections.settle()
        return report

    def remove(self, project: str) -> int:
        """Forget a project; see `Memory.remove_project`."""
        gone = self.projects.remove(self.projects.find(project).id)
        self.leave_nothing()
        return gone

    def leave_nothing(self) -> None:
        """Take the words of what is gone from truth out of every file of the home, too."""
        from anaphora.store.db.scrub import scrub

        scrub(self.projects.truth)
        self.sections.purge()

    def fill_vectors(self) -> None:
        """Embed what has no vector yet, of sections and notes. Waits for the model."""
        while not self._worker.stopping.is_set():
            if not self.indexing.fill_vectors(limit=256):
                break
        self.taking.fill_vectors()
        self.sections.sync()
        self.sections.mend()

    def repair(self) -> Check:
        """Make the index of sections again where it is broken, embed what has no vector."""
        from anaphora.ops import repair_sections

        return repair_sections(self.sections, self.fill_vectors)

    def forget_note(
        self, note_id: str, *, soft: bool, survivors: Survivors | None = None
    ) -> Forgotten:
        """Forget a note; when this returns its words have left the index's files too.

        `survivors` looks for what still holds them.
        """
        from anaphora.ingest.memories import named

        gone = self.taking.forget(note_id, soft=soft)
        if not gone.ids or soft:
            return named(gone, ())
        self.sections.sync()
        self.sections.settle()
        return named(gone, survivors(gone.texts) if survivors is not None else ())

    def catch_up(self) -> None:
        """The same in the background, one at a time."""
        self._worker.begin(self._fill_quietly)

    def _fill_quietly(self) -> None:
        try:
            self.fill_vectors()
        except (EmbeddingError, StoreError):
            # Whoever asks next finds the same trouble, and is told.
            return

    def close(self) -> None:
        """Finish what is under way and let go for good."""
        self._worker.stop()
        self.sections.close()


def open_projects(
    truth: Database,
    namespace: str,
    place: Path,
    embedder: EmbedderService,
    *,
    rows: Sealer,
    hidden: IndexSealer,
    clock: Callable[[], datetime],
    ids: Callable[[], str],
) -> ProjectParts:
    """The context lane of a namespace; `place` is the folder of its index.

    Secrets that an older version has kept of projects are taken out first. Raises StoreError.
    """
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.source import SectionSource
    from anaphora.ingest.notes import NoteLinker, NoteTaking
    from anaphora.ingest.projects.indexing import IndexProject
    from anaphora.recall.context.lane import ContextRecall
    from anaphora.recall.context.warm_up import WarmUpRecall
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.notes import Notes
    from anaphora.store.projects.store import Projects

    projects = Projects(truth, namespace, rows)
    graph = Graph(truth, namespace, rows)
    notes = Notes(truth, namespace, rows)
    sections = SectionIndex(
        place,
        SectionSource(truth, namespace, rows),
        (embedder.name, embedder.dimensions),
        sealer=hidden,
    )
    indexing = IndexProject(projects, graph, notes, embedder, clock=clock, ids=ids)
    linker = NoteLinker(graph, notes, clock=clock, ids=ids)
    recall = ContextRecall(
        projects,
        graph,
        notes,
        sections,
        embedder,
        clock,
        refresh=lambda project: _refreshed(indexing, parts, project),
    )
    parts = ProjectParts(
        projects=projects,
        graph=graph,
        notes=notes,
        sections=sections,
        indexing=indexing,
        taking=NoteTaking(notes, graph, projects, linker, embedder, clock=clock, ids=ids),
        recall=recall,
        warming=WarmUpRecall(recall),
    )
    if indexing.clean():
        parts.leave_nothing()
    return parts


def _refreshed(indexing: IndexProject, parts: ProjectParts, project: str) -> tuple[Degraded, ...]:
    """Take in what changed since the last question; what could not be, in words."""
    try:
        done = indexing.refresh(project)
    except NotFound:
        return (Degraded("project", "it was removed meanwhile"),)
    except StoreError as error:
        return (Degraded("project", f"changed files were not taken in: {error}"),)
    if done.added or done.changed:
        # Words answer at once; vectors of what changed come behind.
        parts.catch_up()
    found: list[Degraded] = []
    if done.missing:
        found.append(Degraded("project", "its folder is not there; what was indexed answers"))
    if done.left:
        found.append(
            Degraded("project", f"{done.left} files changed since it was indexed: index it again")
        )
    return tuple(found)
