"""The bodies, queries and answers of the routes of the core block."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from anaphora.surfaces.rest.schemas import Body, Count, Name, Parameters
from anaphora.values.context import LEAST_BUDGET


class CoreQuery(Parameters):
    """How long the core block may be."""

    budget: Annotated[int | None, Field(ge=LEAST_BUDGET, le=1_000_000)] = None


class Unpinning(Body):
    """A memory that leaves the core block."""

    id: Name


class Pinning(Unpinning):
    """A memory of the core block, and its place among the pinned ones."""

    position: Count | None = None


class Pinned(BaseModel):
    """The id of the current memory."""

    id: str
