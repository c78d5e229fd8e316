"""The graph of a project, brought in line with what truth has of its files.

In: a project, which of its files have changed, what moved. Out: entities and relations in truth, in
one transaction that no other write enters, and notes tied to what came. It reads no disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.ingest.projects.entities import Past, drafts, past_drafts

if TYPE_CHECKING:
    from anaphora.ingest.projects.mentions import NoteLinker
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.rows import ProjectRow
    from anaphora.store.projects.store import Projects


@dataclass(frozen=True, slots=True)
class Graphing:
    """Makes the graphs of one namespace. `clock` gives the present, aware; `ids` new ids."""

    projects: Projects
    graph: Graph
    linker: NoteLinker
    clock: Callable[[], datetime]
    ids: Callable[[], str]

    def bring(
        self,
        project: ProjectRow,
        only: frozenset[str] | None = None,
        pasts: Sequence[Past] = (),
        known: frozenset[str] = frozenset(),
    ) -> None:
        """Bring the graph of a project in line with its files; with `only`, with those (ids).

        `pasts` are paths that became others, `known` the paths whose own relations tell the rest.
        """
        from anaphora.store.projects.transaction import ProjectTransaction

        with self.graph.change() as work:
            files = list(self.projects.files(project.id, facts=True).values())
            entities, relations = drafts(project.id, project.name, files, only)
            present = frozenset(one.path for one in files if one.skipped is None)
            old, past = past_drafts(project.id, pasts, present, known)
            came = work.sync(
                project.id,
                [*old, *entities],
                [*past, *relations],
                now=self.clock(),
                ids=self.ids,
                files=only,
            )
            change = ProjectTransaction(work.write, self.projects.sealer)
            now = change.project(project.id)
            change.change_project(replace(now, stale=False))
            change.drop_unused_vectors()
        if came:
            self.linker.link_all(project.id)
