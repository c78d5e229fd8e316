"""The facade of projects: index them, take notes, recall for a task."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from anaphora.calls.operation import AuditRule, Http, ids_of, local, operation, thread_ids
from anaphora.calls.parameters import (
    Parameter,
    name_parameter,
    text_parameter,
    token_parameter,
)
from anaphora.calls.progress import Progress
from anaphora.calls.tracing import span
from anaphora.container.view import NamespaceView
from anaphora.features.projects.services import ProjectServices
from anaphora.features.projects.values import (
    LEAST_BUDGET,
    DiaryEntry,
    IndexReport,
    NoteKind,
    Observation,
    Project,
    ProjectMap,
    ProjectPair,
    RecallPackage,
    WarmUp,
)


def _ids_of_warm_up(warm_up: WarmUp) -> Iterator[str]:
    yield from ids_of(
        warm_up.core,
        warm_up.constraints,
        warm_up.preferences,
        warm_up.decisions,
        warm_up.blockers,
        warm_up.changed,
        warm_up.facts,
        warm_up.diary,
    )
    yield from thread_ids(session.id for session in warm_up.sessions)


_ABOUT: Final = name_parameter("Name, id or folder of the project that it is about.")
_TEXT_TOKENS: Final = token_parameter("At most this many tokens of text.", LEAST_BUDGET)


class ProjectCalls(NamespaceView):
    """Projects and their notes in one namespace of a home."""

    @property
    def _projects(self) -> ProjectServices:
        return self._services().feature(ProjectServices)

    @operation("index", http=Http("POST /v1/projects", repeatable=True, long=True))
    def index_project(
        self,
        root: str | os.PathLike[str],
        *,
        name: str | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Bring memory in line with the project in the folder `root`: files, relations, history.

        Only what changed is read. When this returns, words, symbols and relations are found.
        Vectors of a few sections are made before, the rest behind this call, first what questions
        find: `ready()` waits for them, and where the home is closed before, the next question goes
        on with them. `embed=False` leaves all to the next question. `progress` is called with
        ("files", "graph" or "words", done, total). Raises
        `InvalidInput` for a folder that is not there, `NotFound` when the project is removed
        meanwhile, `StoreError`; what was kept until then stays.
        """
        with span("index_project"):
            return self._projects.upkeep.index(os.fspath(root), name, progress, embed=embed)

    @operation(
        "read",
        http=Http("GET /v1/projects", "List projects", threads="project", name="list_projects"),
    )
    def projects(self) -> tuple[Project, ...]:
        """The projects of this namespace that are known, with their sizes."""
        return self._projects.store.list()

    @operation(
        "read",
        http=Http("GET /v1/projects/{project}/map", "The shape of a project", threads="project"),
        parameters={
            "project": name_parameter("Name, id or folder of the project."),
            "within": Parameter("A folder of the project: the map shows its files."),
        },
    )
    def project_map(self, project: str, *, within: str | None = None) -> ProjectMap:
        """The folders of a project (its name, folder or id), and which imports from which.

        With `within` the files right in that folder ("." is the root). The most linked 150 where
        there are more; `degraded` says so. Raises `NotFound`.
        """
        from anaphora.features.projects.map import project_map

        services = self._projects
        row = services.store.find(project)
        projects_by_id = {project_info.id: project_info for project_info in services.store.list()}
        return project_map(services.graph, projects_by_id[row.id], within)

    @operation(
        "write",
        parameters={
            "project": name_parameter("Its folder, its remote, or the last part of either."),
            "other": name_parameter("The other one, in the same way."),
        },
    )
    @local("the folders are looked at on the server's machine")
    def same_project(self, project: str, other: str, *, same: bool = True) -> ProjectPair:
        """Say that two folders or repositories are one project, or with `same=False` that not.

        It is for what files do not tell, such as a folder that was renamed: sessions of both are
        then those of one project. What was said last counts. One folder named twice: whatever lay
        in it is one. Raises `InvalidInput` where no session was held, and for a name that several
        projects have, `StoreError`.
        """
        services = self._services()
        places = services.conversation.session_places
        first, second = places.key_of(project), places.key_of(other)
        if places.said().get(frozenset((first, second))) != same:
            at = places.after_all_said(services.clock())
            services.conversation.sessions.note_pair(first, second, at, same=same)
        return ProjectPair(first, second, same, len(places.of_key(first)))

    @operation("write", http=Http("DELETE /v1/projects/{project}", part="sections"))
    def remove_project(self, project: str) -> int:
        """Forget a project (its name, folder or id) with all of its sections; how many those were.

        When this returns no file of the home has its words. Notes about it stay. Raises
        `NotFound`, `StoreError`.
        """
        return self._projects.upkeep.remove(project)

    @operation(
        "write",
        http=Http("POST /v1/observations", "Take a note", creates=True, body="NewObservation"),
        parameters={
            "text": text_parameter("The note, with the names of what it concerns."),
            "project": _ABOUT,
        },
    )
    def observe(
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
        """Keep a note about a project, linked to the files, symbols and packages that it names.

        `kind` is one of blocker, code_insight, constraint, decision, fact, note, preference;
        `importance` 1 to 5; `supersedes` the id of a note that it replaces, which goes into
        history; `project` None means all of them. Raises `InvalidInput`, `NotFound`, `StoreError`.
        """
        with span("observe"):
            return self._projects.note_taking.observe(
                text,
                kind=kind,
                importance=importance,
                tags=tags,
                source=source,
                supersedes=supersedes,
                project=project,
            )

    @operation("read", http=Http("GET /v1/observations", "List notes"))
    def notes(self, project: str | None = None, *, limit: int = 50) -> tuple[Observation, ...]:
        """At most `limit` notes that hold, the latest first.

        With `project` those about it and those about all projects. Raises `InvalidInput`,
        `NotFound`.
        """
        return self._projects.note_taking.observations(project, limit)

    @operation("read", http=Http("GET /v1/diary", "Read the diary"))
    def diary(self, project: str | None = None, *, limit: int = 50) -> tuple[DiaryEntry, ...]:
        """At most `limit` diary entries, the latest first. Raises what `notes` does."""
        return self._projects.note_taking.diary(project, limit)

    @operation(
        "write",
        http=Http("POST /v1/diary", "Write the diary", creates=True, body="NewDiaryEntry"),
        parameters={"summary": text_parameter("The entry."), "project": _ABOUT},
    )
    def write_diary(
        self,
        summary: str,
        *,
        subject: str | None = None,
        tags: Iterable[str] = (),
        project: str | None = None,
    ) -> DiaryEntry:
        """Keep what was done in a session, for the next one. Raises what `observe` does."""
        with span("write_diary"):
            return self._projects.note_taking.write_diary(
                summary, subject=subject, tags=tags, project=project
            )

    @operation(
        "read",
        audit=AuditRule("recalled", "context", lambda package: ids_of(package.memories)),
        question="focus",
        falls_back=True,
        http=Http(
            "POST /v1/context/recall",
            "Recall for a task",
            repeatable=True,
            threads="project",
            body="ContextQuestion",
        ),
        parameters={
            "focus": Parameter(
                "The task, in one or several statements; name files and symbols.", 1, 50
            ),
            "budget": _TEXT_TOKENS,
            "include_sources": Parameter("Also return scores and relations."),
        },
    )
    def recall_context(
        self,
        focus: str | Sequence[str],
        *,
        project: str | None = None,
        budget: int = 2000,
        include_sources: bool = False,
        timeout: float | None = None,
    ) -> RecallPackage:
        """What a task needs to know, for one or several focus statements.

        Where to look first and why, sections, notes, relations and, where the focus asks for it,
        history; at most `budget` tokens (120 or more) as text. `quality` says how far to trust it:
        strong, partial or weak. Files that changed since they were indexed are taken in first.
        `include_sources` adds the signals of every score and all relations. After `timeout` seconds
        nothing is waited for any more, and `degraded` says what was left out. Raises
        `InvalidInput` for bad arguments, `NotFound` for a project, `Cancelled` where a
        `Cancellation` ended the call.
        """
        with span("recall_context"):
            return self._projects.recall_context.recall(
                focus, project=project, budget=budget, include_sources=include_sources
            )

    @operation(
        "read",
        audit=AuditRule("recalled", "warm_up", _ids_of_warm_up),
        question="topic",
        falls_back=True,
        http=Http("GET /v1/warm-up", "Begin a session", folders=("directory",), threads="project"),
        parameters={
            "topic": Parameter("What the session is about, if that is known."),
            "shape": Parameter("Whether the project itself is described."),
            "budget": _TEXT_TOKENS,
        },
    )
    def warm_up(
        self,
        topic: str | None = None,
        *,
        project: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        shape: bool = True,
        budget: int = 2000,
    ) -> WarmUp:
        """What a new session should know first: rules, decisions, the diary, the project's shape.

        At most `budget` tokens (120 or more) as text; with a `topic` half of them is a package
        about it. `directory` is where the session begins: the last sessions are those of the
        project around it, and decisions and facts of others are left out. `shape` says whether the
        project itself is described. Raises `InvalidInput`, `NotFound`.
        """
        with span("warm_up"):
            return self._projects.warm_up.warm_up(
                topic,
                project=project,
                directory=None if directory is None else os.fspath(directory),
                shape=shape,
                budget=budget,
            )
