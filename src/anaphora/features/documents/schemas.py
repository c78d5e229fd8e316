"""The queries and answers of the routes of documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anaphora.surfaces.rest.schemas import Name, Parameters, Time


class NewDocumentQuery(Parameters):
    """What a document is called, and what takes the place of what its file tells of it."""

    name: Annotated[
        Name, Field(description="Its name; another file of this name is a new version.")
    ]
    title: Annotated[str, Field(min_length=1, max_length=300)] | None = Field(
        None, description="Its title; by default that of its file."
    )
    date: Annotated[Time | None, Field(description="Its date; by default that of its file.")] = None
    origin: Annotated[Name | None, Field(description="Where it comes from.")] = None
    tag: Annotated[list[Name], Field(max_length=1_000)] = Field(
        [], description="A word to filter by; may be repeated."
    )
    keep_file: Annotated[
        bool | None,
        Field(description="Store the file with its text; by default unless the text had secrets."),
    ] = None
