"""The routes of projects: index them, take notes, recall for a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from anaphora.surfaces.access import may
from anaphora.surfaces.rest.auth import lane_router, reads_only
from anaphora.surfaces.rest.calls import Caller, answer, caller_of, service_of
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.schemas import (
    ContextQuestion,
    MapQuery,
    Name,
    NewDiaryEntry,
    NewObservation,
    NewProject,
    ProjectGone,
    Projects,
    WarmUpQuery,
)
from anaphora.values.projects import (
    DiaryEntry,
    IndexReport,
    Observation,
    ProjectMap,
    RecallPackage,
    WarmUp,
)

router = lane_router("context")


@router.get("/projects", summary="List projects", responses={200: {"model": Projects}})
async def list_projects(request: Request) -> Response:
    """The projects that are known, with their sizes."""
    return await answer(request, lambda memory: memory.projects())


@router.post("/projects", summary="Index a project", responses={200: {"model": IndexReport}})
async def index(request: Request, body: NewProject) -> Response:
    """A folder on the server's machine, one of those that it was told of; the token must allow it.

    The user who runs the server may name any, with the token that it made at its start.
    """
    root = _folder(body.root, caller_of(request), service_of(request).options)
    return await answer(request, lambda m: m.index_project(root, name=body.name, embed=False))


@router.get(
    "/projects/{project}/map",
    summary="The shape of a project",
    responses={200: {"model": ProjectMap}},
)
async def project_map(
    request: Request, project: Name, query: Annotated[MapQuery, Query()]
) -> Response:
    """Its folders, or the files in one of them, and which imports from which."""
    return await answer(request, lambda m: m.project_map(project, within=query.within))


@router.delete(
    "/projects/{project}",
    summary="Forget a project",
    responses={200: {"model": ProjectGone}},
)
async def remove(request: Request, project: Name) -> Response:
    """Its sections go; notes about it stay."""
    return await answer(
        request, lambda m: {"removed": project, "sections": m.remove_project(project)}
    )


@router.post(
    "/context/recall",
    summary="Recall for a task",
    responses={200: {"model": RecallPackage}},
)
@reads_only
async def recall(request: Request, body: ContextQuestion) -> Response:
    """Where to look first and why, within a budget of tokens; `quality` says how far to trust."""
    return await answer(
        request,
        lambda memory: memory.recall_context(
            body.focus,
            project=body.project,
            budget=body.budget,
            include_sources=body.include_sources,
        ),
    )


@router.get("/warm-up", summary="Begin a session", responses={200: {"model": WarmUp}})
async def warm_up(request: Request, query: Annotated[WarmUpQuery, Query()]) -> Response:
    """What a new session should know first."""
    return await answer(
        request,
        lambda m: m.warm_up(query.topic, project=query.project, budget=query.budget),
    )


@router.post(
    "/observations",
    status_code=201,
    summary="Take a note",
    responses={201: {"model": Observation}},
)
async def observe(request: Request, body: NewObservation) -> Response:
    """Linked to the files, symbols and packages that it names."""
    return await answer(request, lambda memory: memory.observe(**body.given()), 201)


@router.post(
    "/diary", status_code=201, summary="Write the diary", responses={201: {"model": DiaryEntry}}
)
async def diary(request: Request, body: NewDiaryEntry) -> Response:
    """What was done in a session, for the next one."""
    return await answer(request, lambda memory: memory.write_diary(**body.given()), 201)


def _folder(root: str, caller: Caller, options: ServerOptions) -> Path:
    """The folder, if this caller may have it read.

    Who indexes a folder can recall its words: a caller must not open the server's whole disk, other
    namespaces' threads among it, or what only the server's own user can read.
    """
    if not may(caller.token, "index"):
        raise Problem(
            403, "project", "this token may not index (anaphora token create --may-index)"
        )
    try:
        place = Path(root).expanduser()
        if not place.is_absolute():
            raise ValueError
        place = place.resolve()
    except (OSError, RuntimeError, ValueError):
        raise Problem(422, "invalid_input", "root: expected the whole path of a folder") from None
    if may(caller.token, "any_folder"):
        return place
    for allowed in options.projects:
        if place.is_relative_to(allowed.expanduser().resolve()):
            return place
    raise Problem(403, "project", "only folders that the server was told of (--projects)")
