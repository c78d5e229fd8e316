"""The queries and answers of the routes of documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anaphora.features.documents.values import Document, DocumentSection
from anaphora.surfaces.rest.schemas import Name, Parameters, Time


class NewDocumentQuery(Parameters):
    """What a document is called, and what takes the place of what its file tells of it."""

    name: Name
    title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    date: Time | None = None
    origin: Name | None = None
    tag: Annotated[list[Name], Field(max_length=1_000)] = Field(default=[])
    keep_file: bool | None = None


class DocumentNameQuery(Parameters):
    """Which document, by its name."""

    name: Name


class DocumentsQuery(Parameters):
    """How many documents, and whether past versions are among them."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    history: bool = False


DocumentList = list[Document]


SectionList = list[DocumentSection]
