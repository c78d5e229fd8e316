"""The asynchronous face of `ProjectMemories`, for `aio.py`.

In: the arguments of its methods. Out: the same values, awaited. It holds no logic of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from anaphora.api.aio_workers import Workers, in_loop
from anaphora.api.memory import Memory
from anaphora.core.arguments import checks_arguments
from anaphora.core.progress import Progress
from anaphora.values.projects import (
    DiaryEntry,
    IndexReport,
    NoteKind,
    Observation,
    Project,
    ProjectMap,
    RecallPackage,
    WarmUp,
)


@checks_arguments
class AsyncProjectMemories:
    """Projects and their notes in one namespace of a home."""

    _memory: Memory
    _workers: Workers

    async def index_project(
        self,
        root: str | os.PathLike[str],
        *,
        name: str | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> IndexReport:
        """As `Memory.index_project`."""
        return await self._workers.do(
            self._memory.index_project, root, name=name, embed=embed, progress=in_loop(progress)
        )

    async def projects(self) -> tuple[Project, ...]:
        """As `Memory.projects`."""
        return await self._workers.do(self._memory.projects)

    async def project_map(self, project: str, *, within: str | None = None) -> ProjectMap:
        """As `Memory.project_map`."""
        return await self._workers.do(self._memory.project_map, project, within=within)

    async def remove_project(self, project: str) -> int:
        """As `Memory.remove_project`."""
        return await self._workers.do(self._memory.remove_project, project)

    async def observe(
        self,
        text: str,
        *,
        kind: NoteKind = "note",
        importance: int = 3,
        tags: Iterable[str] = (),
        source: str | None = None,
        supersedes: str | None = None,
        project: str | None = None,
    ) -> Observation:
        """As `Memory.observe`."""
        return await self._workers.do(
            self._memory.observe,
            text,
            kind=kind,
            importance=importance,
            tags=tags,
            source=source,
            supersedes=supersedes,
            project=project,
        )

    async def write_diary(
        self,
        summary: str,
        *,
        subject: str | None = None,
        tags: Iterable[str] = (),
        project: str | None = None,
    ) -> DiaryEntry:
        """As `Memory.write_diary`."""
        return await self._workers.do(
            self._memory.write_diary, summary, subject=subject, tags=tags, project=project
        )

    async def recall_context(
        self,
        focus: str | Sequence[str],
        *,
        project: str | None = None,
        budget: int = 2000,
        include_sources: bool = False,
    ) -> RecallPackage:
        """As `Memory.recall_context`."""
        return await self._workers.do(
            self._memory.recall_context,
            focus,
            project=project,
            budget=budget,
            include_sources=include_sources,
        )

    async def warm_up(
        self, topic: str | None = None, *, project: str | None = None, budget: int = 2000
    ) -> WarmUp:
        """As `Memory.warm_up`."""
        return await self._workers.do(self._memory.warm_up, topic, project=project, budget=budget)
