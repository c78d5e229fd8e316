"""The routes of projects: index them, store notes, recall for a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request

from anaphora.api.memory import Memory
from anaphora.features.projects.schemas import (
    ContextQuestion,
    Diary,
    MapQuery,
    NewDiaryEntry,
    NewObservation,
    NewProject,
    Notes,
    NotesQuery,
    ProjectGone,
    Projects,
    WarmUpQuery,
)
from anaphora.features.projects.values import (
    DiaryEntry,
    IndexReport,
    Observation,
    ProjectMap,
    RecallPackage,
    WarmUp,
)
from anaphora.surfaces.access import may
from anaphora.surfaces.rest.calls import caller_of, service_of
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import Name

router = LaneRouter("context")


@router.answers("GET /projects", "List projects", Projects, kind="project")
def list_projects(memory: Memory) -> Any:
    """The projects that are known, with their sizes."""
    return memory.projects()


@router.answers("POST /projects", "Index a project", IndexReport, kind="long")
def index_project(memory: Memory, request: Request, body: NewProject) -> Any:
    """A folder on the server's machine, within its --projects folders; the token must allow it.

    The user who runs the server may name any, with the token that it made at its start.
    """
    # An indexed folder can be recalled: a caller must not get at the server's whole disk, such as
    # other namespaces' threads or files that only the server's user can read.
    token = caller_of(request).token
    if not may(token, "index"):
        raise Problem(
            403, "project", "this token may not index (anaphora token create --may-index)"
        )
    try:
        root = Path(body.root).expanduser()
        if not root.is_absolute():
            raise ValueError
        root = root.resolve()
    except (OSError, RuntimeError, ValueError):
        raise Problem(422, "invalid_input", "root: expected an absolute path of a folder") from None
    allowed_projects = service_of(request).options.projects
    if not may(token, "any_folder") and not any(
        root.is_relative_to(folder.expanduser().resolve()) for folder in allowed_projects
    ):
        raise Problem(403, "project", "only folders under --projects may be indexed")
    return memory.index_project(root, name=body.name, embed=False)


@router.answers("GET /projects/{project}/map", "The shape of a project", ProjectMap, kind="project")
def project_map(memory: Memory, project: Name, query: MapQuery) -> Any:
    """Its folders, or the files in one of them, and which imports from which."""
    return memory.project_map(project, within=query.within)


@router.answers("DELETE /projects/{project}", "Forget a project", ProjectGone, kind="long")
def remove_project(memory: Memory, project: Name) -> Any:
    """Its sections go; notes about it stay."""
    return {"removed": project, "sections": memory.remove_project(project)}


@router.answers(
    "POST /context/recall", "Recall for a task", RecallPackage, reads=True, kind="project"
)
def recall_context(memory: Memory, body: ContextQuestion) -> Any:
    """Where to look first and why, within a budget of tokens; `quality` says how far to trust."""
    return memory.recall_context(**body.given())


@router.answers("GET /warm-up", "Begin a session", WarmUp, kind="project")
def warm_up(memory: Memory, query: WarmUpQuery) -> Any:
    """What a new session should know first."""
    return memory.warm_up(
        query.topic, project=query.project, shape=query.shape, budget=query.budget
    )


@router.answers("GET /observations", "List notes", Notes)
def notes(memory: Memory, query: NotesQuery) -> Any:
    """Current notes, latest first."""
    return memory.notes(query.project, limit=query.limit)


@router.answers("GET /diary", "Read the diary", Diary)
def diary(memory: Memory, query: NotesQuery) -> Any:
    """What was done in the last sessions, the latest first."""
    return memory.diary(query.project, limit=query.limit)


@router.answers("POST /observations", "Take a note", Observation, 201)
def observe(memory: Memory, body: NewObservation) -> Any:
    """Linked to the files, symbols and packages that it names."""
    return memory.observe(**body.given())


@router.answers("POST /diary", "Write the diary", DiaryEntry, 201)
def write_diary(memory: Memory, body: NewDiaryEntry) -> Any:
    """What was done in a session, for the next one."""
    return memory.write_diary(**body.given())
