"""What answers look like, for the OpenAPI document. The JSON itself is `surfaces.wire`'s.

In: the frozen values. Out: models that describe their JSON form; they never make or check any.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from anaphora.values.conversations import Check, Degraded, ThreadSummary, TurnHit
from anaphora.values.deep import Gap, TraceSummary
from anaphora.values.memories import MemoryHit, MemoryRecord
from anaphora.values.projects import Project

_TIME: Any = Field(json_schema_extra={"format": "date-time"})


class MemoryPage(BaseModel):
    """A page of memories."""

    items: list[MemoryRecord]
    cursor: str | None


class RejectedShape(BaseModel):
    """A candidate that did not come back, and why."""

    hit: MemoryHit
    reason: str


class Memories(BaseModel):
    """Recalled memories, the best first; `rejected` where it was asked for."""

    hits: list[MemoryHit]
    degraded: list[Degraded]
    rejected: list[RejectedShape] = []


class TurnHits(BaseModel):
    """Recalled turns, the best first."""

    hits: list[TurnHit]
    degraded: list[Degraded]


class TurnShape(BaseModel):
    """One turn, word for word. The time is exact."""

    role: str
    text: str
    ts: str = _TIME
    intent_id: str = ""
    speaker: str = ""
    source: str = ""


class ThreadShape(BaseModel):
    """A conversation, the oldest turn first."""

    conversation_id: str
    turns: list[TurnShape]
    updated: str = _TIME
    title: str = ""


class ConversationPage(BaseModel):
    """Conversations, the newest first."""

    items: list[ThreadSummary]
    cursor: str | None


class SeedItems(BaseModel):
    """All conversations, the newest first."""

    items: list[ThreadSummary]


class SeedRecord(BaseModel):
    """A conversation as its file has it."""

    model_config = ConfigDict(extra="allow")

    conversation_id: str
    turns: list[dict[str, Any]] | None = None
    updated: str


class Appended(BaseModel):
    """The places at which the turns stand now. Blank ones were not kept, as everywhere."""

    conversation_id: str
    indexes: list[int]


class Deleted(BaseModel):
    """What is gone."""

    deleted: str


class PlaceShape(BaseModel):
    """A turn."""

    conversation_id: str
    index: int


class ProjectGone(BaseModel):
    """The project that was forgotten, and how many sections it had."""

    removed: str
    sections: int


class Redacted(BaseModel):
    """The turn whose words are gone."""

    redacted: PlaceShape


class Titled(BaseModel):
    """The title that the conversation has now."""

    conversation_id: str
    title: str


class Session(BaseModel):
    """What a caller may do. `tokens` says whether requests need one."""

    namespaces: list[str]
    read_only: bool
    token: str | None
    tokens: bool


class HealthShape(BaseModel):
    """Every part and whether it works. `pending` are vectors that still come."""

    ok: bool
    checks: list[Check]
    pending: int
    jobs: int


class Live(BaseModel):
    """The process answers."""

    ok: bool


class PlacedReason(BaseModel):
    """A mistake, and where it stands."""

    at: str
    reason: str


class ProblemShape(BaseModel):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[PlacedReason] = []


Gaps = list[Gap]
Projects = list[Project]
Traces = list[TraceSummary]
