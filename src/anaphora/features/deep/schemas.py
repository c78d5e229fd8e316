"""The bodies, queries and answers of the routes of deep recall."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Literal

from pydantic import Field

from anaphora.calls.parameters import VISIBLE
from anaphora.features.deep.values import Budget, Gap, GapStatus, Scope
from anaphora.surfaces.rest.schemas import Body, Name, Parameters


class BudgetBody(Body):
    """The limits of the call. What is not here has its default."""

    iterations: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Programs that the model writes and runs; the answer comes after them."
    )
    sub_calls: Annotated[int, Field(ge=0, le=10_000)] | None = Field(
        None, description="Calls of the cheap model."
    )
    tokens: Annotated[int, Field(ge=0, le=100_000_000)] | None = Field(
        None, description="Tokens of all calls together, in and out."
    )
    seconds: Annotated[float, Field(ge=0, le=3_600)] | None = Field(
        None, description="Seconds that the whole answer may take."
    )
    execution_seconds: Annotated[float, Field(gt=0, le=600)] | None = Field(
        None,
        description="Seconds that one block of the model's code may run; without it, "
        "`ANAPHORA_EXECUTION_SECONDS`, else 10.",
    )
    dollars: Annotated[float, Field(ge=0, le=1_000)] | None = Field(
        None, description="Maximum cost of model calls in dollars, by the configured prices."
    )

    def to_argument(self) -> Budget:
        """As the facade takes it. `dollars` null is the default, too: no limit is for the owner."""
        limits = {field.name: getattr(self, field.name) for field in fields(Budget)}
        return replace(Budget(), **{n: v for n, v in limits.items() if v is not None})


class DeepQuestion(Body):
    """A question that needs more than a search."""

    question: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            pattern=VISIBLE,
            description="The question, in your own words.",
        ),
    ]
    scope: Annotated[Scope, Field(description="How far to look.")] = "recent_sessions"
    conversation_id: Annotated[
        Name | None, Field(description="The conversation, where `scope` asks for one.")
    ] = None
    include_memory: Annotated[bool, Field(description="Also look at lasting memories.")] = True
    budget: Annotated[BudgetBody | None, Field(description="The limits of the call.")] = None


class GapQuery(Parameters):
    """Gaps of one status, or of all."""

    status: Annotated[
        GapStatus | Literal["all"], Field(description="Only those of this status.")
    ] = "open"


Gaps = list[Gap]
