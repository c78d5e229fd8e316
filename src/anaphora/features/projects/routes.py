"""The routes of projects: index them, store notes, recall for a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import Request

from anaphora.api.memory import Memory
from anaphora.calls.operation import operation_of
from anaphora.features.projects.calls import ProjectCalls
from anaphora.features.projects.schemas import (
    NewProject,
    ProjectGone,
)
from anaphora.features.projects.values import (
    IndexReport,
)
from anaphora.surfaces.access import may
from anaphora.surfaces.rest.calls import caller_of, service_of
from anaphora.surfaces.rest.derived import path_parameter
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.routing import LaneRouter

ProjectName = Annotated[
    str, path_parameter(operation_of(ProjectCalls.project_map).describe("project"))
]
router = LaneRouter("context")
router.offer(ProjectCalls)


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


@router.answers("DELETE /projects/{project}", "Forget a project", ProjectGone, kind="long")
def remove_project(memory: Memory, project: ProjectName) -> Any:
    """Its sections go; notes about it stay."""
    return {"removed": project, "sections": memory.remove_project(project)}
