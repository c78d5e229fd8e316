"""The bodies, queries and answers of the routes of projects and notes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from anaphora.surfaces.rest.schemas import Body, Name


class NewProject(Body):
    """A folder on the server's machine, to be indexed as a project."""

    root: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4096,
            pattern=r"^[^\x00]+$",
            description="The folder, on the server's machine.",
        ),
    ]
    name: Annotated[
        Name | None, Field(description="What to call it; without one, the folder's name.")
    ] = None


class ProjectGone(BaseModel):
    """The project that was forgotten, and how many sections it had."""

    removed: str
    sections: int
