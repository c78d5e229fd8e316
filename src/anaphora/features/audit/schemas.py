"""The queries of the audit trail's routes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from anaphora.features.audit.values import ABOUT, ACTION, BEFORE, QUESTION, TIP
from anaphora.surfaces.rest.schemas import Name, Parameters
from anaphora.values.actions import AuditAction


class AuditQuery(Parameters):
    """Which entries of the audit trail."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    before: Annotated[int, Field(ge=1)] | None = Field(None, description=BEFORE)
    action: Annotated[AuditAction | None, Field(description=ACTION)] = None
    about: Annotated[Name | None, Field(description=ABOUT)] = None
    question: Annotated[str | None, Field(description=QUESTION)] = None


class TipQuery(Parameters):
    """A tip that was noted before."""

    tip: Annotated[Name | None, Field(description=TIP)] = None
