"""The queries and answers of the routes of documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anaphora.surfaces.rest.schemas import Name, Parameters, Time


class NewDocumentQuery(Parameters):
    """What a document is called, and what takes the place of what its file tells of it."""

    name: Name
    title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    date: Time | None = None
    origin: Name | None = None
    tag: Annotated[list[Name], Field(max_length=1_000)] = Field(default_factory=list)
    keep_file: bool | None = None
