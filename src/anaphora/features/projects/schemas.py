"""The bodies, queries and answers of the routes of projects and notes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from anaphora.features.projects.values import DiaryEntry, NoteKind, Observation, Project
from anaphora.surfaces.rest.schemas import Body, Name, Parameters, Query, Seconds, Tags, Text
from anaphora.values.context import LEAST_BUDGET


class MapQuery(Parameters):
    """A folder of the project, to see its files."""

    within: str | None = None


class NewProject(Body):
    """A folder on the server's machine, to be indexed as a project."""

    root: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
    name: Name | None = None


class ContextQuestion(Body):
    """What a task is about, in one statement or several."""

    focus: Query | Annotated[list[Query], Field(min_length=1, max_length=50)]
    project: Name | None = None
    budget: Annotated[int, Field(ge=LEAST_BUDGET, le=1_000_000)] = 2000
    include_sources: bool = False
    timeout: Seconds | None = None


class WarmUpQuery(Parameters):
    """What the session is about, if that is known."""

    topic: str | None = None
    project: str | None = None
    shape: bool = True
    budget: Annotated[int, Field(ge=LEAST_BUDGET, le=1_000_000)] = 2000


class NotesQuery(Parameters):
    """How many notes, and about which project."""

    project: str | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class NewObservation(Body):
    """A note about a project."""

    text: Text
    kind: NoteKind = "note"
    importance: Annotated[int, Field(ge=1, le=5)] = 3
    tags: Tags = Field(default=[])
    source: Name | None = None
    supersedes: Name | None = None
    project: Name | None = None


class NewDiaryEntry(Body):
    """What was done in a session."""

    summary: Text
    subject: Name | None = None
    tags: Tags = Field(default=[])
    project: Name | None = None


class ProjectGone(BaseModel):
    """The project that was forgotten, and how many sections it had."""

    removed: str
    sections: int


Projects = list[Project]


Notes = list[Observation]


Diary = list[DiaryEntry]
