"""The bodies, queries and answers of the routes of deep recall."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Literal

from pydantic import Field

from anaphora.features.deep.values import Budget, Gap, GapStatus, Scope
from anaphora.surfaces.rest.schemas import VISIBLE, Body, Name, Parameters


class BudgetBody(Body):
    """The limits of the call. What is not here has its default."""

    iterations: Annotated[int, Field(ge=1, le=100)] | None = None
    sub_calls: Annotated[int, Field(ge=0, le=10_000)] | None = None
    tokens: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    seconds: Annotated[float, Field(ge=0, le=3_600)] | None = None
    execution_seconds: Annotated[float, Field(gt=0, le=600)] | None = None
    dollars: Annotated[float, Field(ge=0, le=1_000)] | None = None

    def to_argument(self) -> Budget:
        """As the facade takes it. `dollars` null is the default, too: no limit is for the owner."""
        limits = {field.name: getattr(self, field.name) for field in fields(Budget)}
        return replace(Budget(), **{n: v for n, v in limits.items() if v is not None})


class DeepQuestion(Body):
    """A question that needs more than a search."""

    question: Annotated[str, Field(min_length=1, max_length=4_000, pattern=VISIBLE)]
    scope: Scope = "recent_sessions"
    conversation_id: Name | None = None
    include_memory: bool = True
    budget: BudgetBody | None = None


class GapQuery(Parameters):
    """Gaps of one status, or of all."""

    status: GapStatus | Literal["all"] = "open"


Gaps = list[Gap]
