"""The schemas of answers, used only by the OpenAPI document.

Most are the frozen values themselves and their envelopes; `surfaces.wire` makes their JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)

from anaphora.values.conversations import (
    Check,
    Degraded,
    Recall,
    ThreadSummary,
    TurnHit,
)
from anaphora.values.memories import (
    MemoryHit,
    MemoryRecord,
    Page,
)
from anaphora.values.namespaces import NamespaceAccess
from anaphora.values.search import SearchHit

_DATE_TIME: Any = Field(json_schema_extra={"format": "date-time"})


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
    confidence: float | None = None
    nearest: list[MemoryHit] = []
    notices: list[str] = []


class SearchHits(BaseModel):
    """What was found, of every kind, the best first."""

    hits: list[SearchHit]
    degraded: list[Degraded]
    confidence: float | None = None
    nearest: list[SearchHit] = []
    notices: list[str] = []


class TurnHits(BaseModel):
    """Recalled turns, the best first."""

    hits: list[TurnHit]
    degraded: list[Degraded]
    confidence: float | None = None
    nearest: list[TurnHit] = []
    notices: list[str] = []


class TurnShape(BaseModel):
    """One turn, word for word. The time is exact."""

    role: str
    text: str
    ts: str = _DATE_TIME
    intent_id: str = ""
    speaker: str = ""
    source: str = ""


class ThreadShape(BaseModel):
    """A conversation, the oldest turn first."""

    conversation_id: str
    turns: list[TurnShape]
    updated: str = _DATE_TIME
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
    """The indexes of the stored turns. Blank ones are never stored."""

    conversation_id: str
    indexes: list[int]


class Ready(BaseModel):
    """Whether the model is loaded and everything known is indexed."""

    ready: bool


class Deleted(BaseModel):
    """What was deleted."""

    deleted: str


class PlaceShape(BaseModel):
    """A turn."""

    conversation_id: str
    index: int


class Redacted(BaseModel):
    """The redacted turn."""

    redacted: PlaceShape


class Titled(BaseModel):
    """The title that the conversation has now."""

    conversation_id: str
    title: str


class Session(BaseModel):
    """What a caller may do. `tokens` says whether requests need one.

    `person` is the name of the person that the token was made for; empty where none was named.
    """

    namespaces: list[str]
    read_only: bool
    token: str | None
    person: str = ""
    tokens: bool


class AccessShape(BaseModel):
    """The readers of a namespace through this server, besides the user of the server process.

    `summary` says so in one sentence.
    """

    namespace: str
    readers: list[NamespaceAccess]
    summary: str


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


Scalars = dict[str, str | int | float | bool | None]


class _ProblemShape(BaseModel):
    """What every problem document (RFC 9457) has, beside its `type`.

    `next` says in one sentence what to do about it. `error` is the name of the error that a program
    in Python gets, `data` what it holds.
    """

    title: str
    status: int
    detail: str
    next: str = ""
    error: str | None = None


class InvalidInputProblem(_ProblemShape):
    """What was sent cannot be used: each mistake, and where it stands."""

    type: str
    errors: list[PlacedReason] = []
    data: Scalars | None = None


class MissingThing(BaseModel):
    """What is not there: its kind, and the id that was asked for."""

    kind: str
    id: str


class NotFoundProblem(_ProblemShape):
    """There is nothing with this id, or no such route: `data` says which of them."""

    type: str
    data: MissingThing | None = None


class InternalProblem(_ProblemShape):
    """An error that nothing expected; the server's log has it as this `incident`."""

    type: str
    incident: str | None = None
    data: Scalars | None = None


class OtherProblem(_ProblemShape):
    """Everything else, by its `type`."""

    type: str
    data: Scalars | None = None


PROBLEM_SHAPES: Final[Mapping[type[BaseModel], tuple[str, ...]]] = {
    InvalidInputProblem: ("invalid_input", "filter"),
    NotFoundProblem: ("not_found",),
    InternalProblem: ("internal",),
    OtherProblem: (),
}
"""The forms of problems, with the names of those that use each; the last is for all others."""


ENVELOPES: Final[Mapping[Any, type[BaseModel]]] = {
    Page[MemoryRecord]: MemoryPage,
    Recall[MemoryHit]: Memories,
    Recall[TurnHit]: TurnHits,
    Recall[SearchHit]: SearchHits,
}
"""What a call returns, and the form in which it is answered."""
