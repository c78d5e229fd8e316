"""The queries of the audit trail's routes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anaphora.surfaces.rest.schemas import Name, Parameters, Query
from anaphora.values.actions import AuditAction


class AuditQuery(Parameters):
    """Which entries of the audit trail."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    before: Annotated[int, Field(ge=1)] | None = None
    action: AuditAction | None = None
    about: Name | None = None
    question: Query | None = None


class TipQuery(Parameters):
    """A tip that was noted before."""

    tip: Name | None = None
