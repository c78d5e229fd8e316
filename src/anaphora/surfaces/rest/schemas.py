"""What requests carry, and what answers look like.

Bodies and parameters are checked before a memory is asked: their fields are those of the facade,
nothing is converted on the way (a number in quotes is no number), and a field that is not known is
refused. Answers are described for the OpenAPI document alone, by the frozen values and what goes
around them; `surfaces.wire` makes their JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)

from anaphora.values.audit import AuditAction
from anaphora.values.conversations import (
    Check,
    Degraded,
    RecallMode,
    ThreadSummary,
    TurnHit,
    TurnRole,
)
from anaphora.values.deep import Budget, Gap, GapStatus, Scope, TraceSummary
from anaphora.values.documents import Document, DocumentSection
from anaphora.values.memories import (
    MEMORY_FIELDS,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    NewMemory,
    Verdict,
)
from anaphora.values.projects import LEAST_BUDGET, DiaryEntry, NoteKind, Observation, Project
from anaphora.values.search import SearchHit, SearchKind
from anaphora.values.sessions import ToolCallHit
from anaphora.values.sync import SyncDevice, SyncStatus

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_VISIBLE: Final = r"[^\s\x00-\x20\x7f-\xa0]"


def _time(value: object) -> datetime:
    if not isinstance(value, str) or not _RFC3339.match(value):
        raise ValueError("expected a time such as 2026-04-30T12:00:00Z")
    text = value.upper().replace("Z", "+00:00")
    # Python keeps microseconds.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


Time = Annotated[
    datetime, BeforeValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
Text = Annotated[str, Field(min_length=1, pattern=_VISIBLE)]
Name = Annotated[str, Field(min_length=1, max_length=1024, pattern=_VISIBLE)]
# A body has its limit: a text in it needs none of its own.
Query = str
Tags = Annotated[list[Name], Field(max_length=1_000)]
Count = Annotated[int, Field(ge=1, le=1_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Filters = Annotated[
    dict[str, Any] | None,
    # The document of the whole knows the language of filters; a part alone cannot.
    WithJsonSchema({"x-filter": True}),
]


class Body(BaseModel):
    """Strict, and closed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> dict[str, Any]:
        """The fields by name, for a call of the facade."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        budget = found.get("budget")
        return found | {"budget": budget.budget()} if isinstance(budget, BudgetBody) else found


class Parameters(BaseModel):
    """Of a URL: texts, from which numbers are read; closed."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Parameters):
    """No parameters."""


# What each kind of field of a memory is in a body; the text itself is the only one that must be.
_KINDS: Final[Mapping[str, Any]] = {
    "text": Name,
    "id": Name,
    "path": Name,
    "type": MemoryType,
    "tags": Tags,
    "payload": dict[str, Any],
    "time": Time,
    "number": Annotated[int, Field(ge=0, le=2**31 - 1)],
}


def _of_memory(*, changes: bool) -> type[Body]:
    """A body with the fields that a memory is given with; for `changes` those that can change."""
    members: dict[str, Any] = {}
    for one in fields(NewMemory):
        known = MEMORY_FIELDS[one.name]
        if known.kind == "flag" or (changes and known.changes is None):
            continue
        kind = Text if one.name == "text" else _KINDS[known.kind]
        if changes or one.default is None:
            members[one.name] = kind | None, None
        else:
            default = ... if one.default is MISSING else one.default
            members[one.name] = kind, [] if default == () else default
    return create_model("Body", __base__=Body, **members)


class NewMemoryBody(_of_memory(changes=False)):  # type: ignore[misc]
    """One thing to remember."""


class NewMemoryItem(NewMemoryBody):
    """One of many things to remember, for programs whose contract is to return what was put."""

    dedupe: bool = True
    redact: bool = True
    guarded: bool = False


class MemoryChanges(_of_memory(changes=True)):  # type: ignore[misc]
    """What to change; a field that is not here stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


class NewMemories(Body):
    """Many things to remember: all are checked before any is kept."""

    items: Annotated[list[NewMemoryItem], Field(min_length=1, max_length=10_000)]


class Ask(Body):
    """A question to lasting memories."""

    query: Query
    top_k: Count = 3
    min_score: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    filters: Filters = None
    mode: RecallMode = "hybrid"
    as_of: Time | None = None
    explain: bool = False
    min_confidence: Share | None = None


class Forgetting(Body):
    """What to forget: one memory, or all that a filter finds. Exactly one of the two."""

    id: Name | None = None
    filters: Filters = None
    soft: bool = False
    undoable: bool = False
    dry_run: bool = False


class Unforgetting(Body):
    """A memory that was forgotten so that it can come back."""

    id: Name


class SearchQuestion(Body):
    """A question to everything that is kept."""

    query: Query
    top_k: Annotated[int, Field(ge=1, le=1_000)] = 8
    budget: Annotated[int, Field(ge=0, le=1_000_000)] = 2000
    kinds: Annotated[list[SearchKind], Field(min_length=1, max_length=5)] = [
        "memory",
        "note",
        "turn",
        "file",
    ]
    since: Time | None = None
    until: Time | None = None
    speaker: Name | None = None
    project: Name | None = None
    tags: Tags = []
    exclude: Annotated[list[str], Field(max_length=1_000)] = []
    min_confidence: Share | None = None


class ContradictionQuery(Parameters):
    """Which contradictions: the open ones, or those that somebody has settled."""

    settled: bool = False
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class Reopening(Body):
    """Two memories whose contradiction was settled."""

    id: Name
    other_id: Name


class Settling(Reopening):
    """What holds of two memories: `id` replaces `other_id`, both hold, or `id` is wrong."""

    verdict: Verdict


class CoreQuery(Parameters):
    """How long the core block may be."""

    budget: Annotated[int | None, Field(ge=LEAST_BUDGET, le=1_000_000)] = None


class Unpinning(Body):
    """A memory that leaves the core block."""

    id: Name


class Pinning(Unpinning):
    """A memory of the core block, and its place among the pinned ones."""

    position: Count | None = None


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


class ListQuery(Parameters):
    """A page of memories. `filters` is a filter in JSON."""

    filters: str | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    cursor: str | None = None


class DeleteQuery(Parameters):
    """How to forget."""

    soft: bool = False
    undoable: bool = False


class PathQuery(Parameters):
    """What a memory is the value of."""

    path: Name


class ShortIdQuery(Parameters):
    """The end of an id, and what it is the id of."""

    short: Name
    kind: Literal["any", "memory", "conversation"] = "any"


class ThreadQuery(Parameters):
    """How much of a conversation."""

    last: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class ReadyQuery(Parameters):
    """How long to wait."""

    timeout: Annotated[float, Field(ge=0, le=20)] = 10.0


class MapQuery(Parameters):
    """A folder of the project, to see its files."""

    within: str | None = None


class PageQuery(Parameters):
    """A page of a listing."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    cursor: str | None = None


class NewTurnBody(Body):
    """A turn to be kept."""

    role: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
    text: str
    intent_id: Annotated[str, Field(max_length=1024)] = ""
    ts: Time | None = None
    speaker: Name | None = None


class AppendTurns(Body):
    """Turns for the end of a conversation, all or none of them."""

    title: Annotated[str, Field(max_length=1_000)] = ""
    turns: Annotated[list[NewTurnBody], Field(min_length=1, max_length=1_000)]


class SeedTitle(Body):
    """A title of one's own."""

    title: Annotated[str, Field(max_length=1_000)]


class TurnQuestion(Body):
    """A question to conversations: one of them, or all."""

    query: Query
    conversation_id: Name | None = None
    top_k: Annotated[int, Field(ge=1, le=1_000)] = 6
    budget: Annotated[int, Field(ge=0, le=1_000_000)] = 2500
    exclude: Annotated[list[str], Field(max_length=1_000)] = []
    mode: RecallMode = "hybrid"
    since: Time | None = None
    until: Time | None = None
    speaker: Name | None = None
    role: TurnRole | None = None
    min_confidence: Share | None = None


class NewProject(Body):
    """A folder on the server's machine, to be indexed as a project."""

    root: Annotated[str, Field(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]
    name: Name | None = None


class ContextQuestion(Body):
    """What a task is about, in one statement or several."""

    focus: Query | Annotated[list[Query], Field(min_length=1, max_length=50)]
    project: Name | None = None
    budget: Annotated[int, Field(ge=LEAST_BUDGET, le=1_000_000)] = 2000
    include_sources: bool = False


class WarmUpQuery(Parameters):
    """What the session is about, if that is known."""

    topic: str | None = None
    project: str | None = None
    shape: bool = True
    budget: Annotated[int, Field(ge=LEAST_BUDGET, le=1_000_000)] = 2000


class NotesQuery(Parameters):
    """How many notes, and about which project."""

    project: str | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class NewObservation(Body):
    """A note about a project."""

    text: Text
    kind: NoteKind = "note"
    importance: Annotated[int, Field(ge=1, le=5)] = 3
    tags: Tags = []
    source: Name | None = None
    supersedes: Name | None = None
    project: Name | None = None


class NewDiaryEntry(Body):
    """What was done in a session."""

    summary: Text
    subject: Name | None = None
    tags: Tags = []
    project: Name | None = None


class BudgetBody(Body):
    """The limits of the call. What is not here has its default."""

    iterations: Annotated[int, Field(ge=1, le=100)] | None = None
    sub_calls: Annotated[int, Field(ge=0, le=10_000)] | None = None
    tokens: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    seconds: Annotated[float, Field(ge=0, le=3_600)] | None = None
    execution_seconds: Annotated[float, Field(gt=0, le=600)] | None = None
    dollars: Annotated[float, Field(ge=0, le=1_000)] | None = None

    def budget(self) -> Budget:
        """As the facade takes it. `dollars` null is the default, too: no limit is for the owner."""
        given = {field.name: getattr(self, field.name) for field in fields(Budget)}
        return replace(Budget(), **{n: v for n, v in given.items() if v is not None})


class DeepQuestion(Body):
    """A question that needs more than a search."""

    question: Annotated[str, Field(min_length=1, max_length=4_000, pattern=_VISIBLE)]
    scope: Scope = "recent_sessions"
    conversation_id: Name | None = None
    include_memory: bool = True
    budget: BudgetBody | None = None


class ExtractWish(Body):
    """The conversation to take facts out of."""

    conversation_id: Name
    budget: BudgetBody | None = None


class DreamWish(Body):
    """One cycle; without a model it costs nothing."""

    model: bool = True
    budget: BudgetBody | None = None


class GapQuery(Parameters):
    """Gaps of one status, or of all."""

    status: GapStatus | Literal["all"] = "open"


class TraceQuery(Parameters):
    """How many traces at most."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 20


class NewDocumentQuery(Parameters):
    """What a document is called, and what takes the place of what its file tells of it."""

    name: Name
    title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    date: Time | None = None
    origin: Name | None = None
    tag: Annotated[list[Name], Field(max_length=1_000)] = []
    keep_file: bool | None = None


class DocumentsQuery(Parameters):
    """How many documents, and whether past versions are among them."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    history: bool = False


class ImportQuery(Parameters):
    """How to read what is imported. Without a format it is recognised.

    `name` is the file's own: notes, and chats without an id, are known by it.
    """

    format: str | None = None
    again: bool = False
    name: Annotated[str, Field(max_length=255)] = ""


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


class Pinned(BaseModel):
    """The id of the memory that holds now."""

    id: str


class BroughtBack(BaseModel):
    """The ids of what is recalled again."""

    ids: list[str]


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
    """The places at which the turns stand now. Blank ones were not kept, as everywhere."""

    conversation_id: str
    indexes: list[int]


ProjectId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,80}$")]


class StateQuery(Parameters):
    """Which project, and which digest of a path or a conversation."""

    project_id: ProjectId
    query_hash: ProjectId | None = None


class EntriesQuery(Parameters):
    """Which entries of which device."""

    project_id: ProjectId
    device: ProjectId
    after: Annotated[int, Field(ge=0, le=2**53)] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class NewEntries(Body):
    """Entries as devices make them."""

    project_id: ProjectId
    entries: Annotated[list[dict[str, Any]], Field(max_length=100)]


class HeadShape(BaseModel):
    """The last entry of a device."""

    number: int
    snapshot_id: str


class SealedEntry(BaseModel):
    """An entry: what a server sees of it, and in `sealed` what it does not (base64).

    `dropped`, its id, stands there instead once what it said is gone.
    """

    v: int
    project: str
    device: str
    number: int
    epoch: str
    parent: str
    hashes: list[str]
    signature: str
    sealed: str | None = None
    dropped: str | None = None


class SyncShape(BaseModel):
    """How this namespace is synced; `project` is empty where it is not."""

    status: SyncStatus
    devices: list[SyncDevice]


class RemovedDevice(Body):
    """A device that is to be removed."""

    device: Annotated[str, Field(min_length=1, max_length=200)]


class AgentState(BaseModel):
    """How far a project has come. `status` is "active" or "empty"."""

    project_id: str
    status: Literal["active", "empty"]
    heads: dict[str, HeadShape]
    payload: SealedEntry | None = None


class EntriesShape(BaseModel):
    """Entries in order."""

    project_id: str
    entries: list[SealedEntry]


class Pushed(BaseModel):
    """How many entries were new."""

    project_id: str
    accepted: int


class WholeId(BaseModel):
    """An id in full."""

    id: str


class Waiting(BaseModel):
    """How many jobs wait now."""

    jobs: int


class Ready(BaseModel):
    """Whether the model is loaded and everything known is indexed."""

    ready: bool


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


Scalars = dict[str, str | int | float | bool | None]


class _ProblemShape(BaseModel):
    """What every problem document (RFC 9457) has, beside its `type`.

    `error` is the name of the error that a program in Python gets, `data` what it holds.
    """

    title: str
    status: int
    detail: str
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


class OtherProblem(_ProblemShape):
    """Everything else, by its `type`."""

    type: str
    data: Scalars | None = None


PROBLEM_SHAPES: Final[Mapping[type[BaseModel], tuple[str, ...]]] = {
    InvalidInputProblem: ("invalid_input", "filter"),
    NotFoundProblem: ("not_found",),
    OtherProblem: (),
}
"""The forms of problems, and the names of those that have it; the last is that of the others."""


Gaps = list[Gap]
Projects = list[Project]
DocumentList = list[Document]
SectionList = list[DocumentSection]
ToolCalls = list[ToolCallHit]
Notes = list[Observation]
Diary = list[DiaryEntry]
Traces = list[TraceSummary]
