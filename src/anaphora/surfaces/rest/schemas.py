"""The schemas of requests.

Bodies and parameters are validated before a memory is called: their fields are those of the facade,
nothing is converted (a number in quotes is no number), and unknown fields are refused. The schemas
of answers are in `shapes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)

from anaphora.values.actions import Action
from anaphora.values.conversations import (
    READ_AWAITED,
    READ_MOST,
    RecallMode,
    TurnRole,
)
from anaphora.values.deep import Budget, GapStatus, Scope
from anaphora.values.memories import (
    MEMORY_FIELDS,
    MemoryType,
    NewMemory,
    Verdict,
)
from anaphora.values.projects import LEAST_BUDGET, NoteKind
from anaphora.values.search import SearchKind

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_VISIBLE: Final = r"[^\s\x00-\x20\x7f-\xa0]"


def _time(value: object) -> datetime:
    if not isinstance(value, str) or not _RFC3339.match(value):
        raise ValueError("expected a time such as 2026-04-30T12:00:00Z")
    text = value.upper().replace("Z", "+00:00")
    # Python stores microseconds only.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))


Time = Annotated[
    datetime, BeforeValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})
]


def _day_or_time(value: object) -> date | datetime:
    if isinstance(value, str) and _DATE.match(value):
        return date.fromisoformat(value)
    return _time(value)


DayOrTime = Annotated[
    date | datetime,
    BeforeValidator(_day_or_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ]
        }
    ),
]
Text = Annotated[str, Field(min_length=1, pattern=_VISIBLE)]
Name = Annotated[str, Field(min_length=1, max_length=1024, pattern=_VISIBLE)]
# Bodies have a size limit, so a text in one needs none of its own.
Query = str
Tags = Annotated[list[Name], Field(max_length=1_000)]
Count = Annotated[int, Field(ge=1, le=1_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=3_600)]
Filters = Annotated[
    dict[str, Any] | None,
    # Replaced in the complete document, which contains the filter language.
    WithJsonSchema({"x-filter": True}),
]


class Body(BaseModel):
    """Strict, and closed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def given(self) -> dict[str, Any]:
        """The fields by name, as arguments of the facade."""
        arguments = {name: getattr(self, name) for name in type(self).model_fields}
        budget = arguments.get("budget")
        return (
            arguments | {"budget": budget.budget()} if isinstance(budget, BudgetBody) else arguments
        )


class ReadQuestion(Body):
    """A question that a reader reads together with the first candidates before the answer."""

    read: Annotated[int, Field(ge=0, le=READ_MOST)] | None = None

    def given(self) -> dict[str, Any]:
        """The fields by name, with the default number of candidates to read."""
        arguments = super().given()
        return arguments | {"read": READ_AWAITED if self.read is None else self.read}


class Parameters(BaseModel):
    """Of a URL: texts, from which numbers are read; closed."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Parameters):
    """No parameters."""


# The type of each kind of field of a memory; only the text is required.
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


def _memory_body(*, changes: bool) -> type[Body]:
    """A body with the fields of a new memory; for `changes`, with those that can change."""
    members: dict[str, Any] = {}
    for field in fields(NewMemory):
        spec = MEMORY_FIELDS[field.name]
        if spec.kind == "flag" or (changes and spec.changes is None):
            continue
        kind = Text if field.name == "text" else _KINDS[spec.kind]
        if changes and (field.default is not None or spec.kind == "path"):
            # Optional in the body, but a memory always has it.
            members[field.name] = kind, Field(default_factory=lambda: None)
        elif changes or field.default is None:
            members[field.name] = kind | None, None
        else:
            default = ... if field.default is MISSING else field.default
            members[field.name] = kind, [] if default == () else default
    return create_model("Body", __base__=Body, **members)


class NewMemoryBody(_memory_body(changes=False)):  # type: ignore[misc]
    """One thing to remember."""


class NewMemoryItem(NewMemoryBody):
    """One of many things to remember, with options for programs that must store texts unchanged."""

    dedupe: bool = True
    redact: bool = True
    guarded: bool = False


class MemoryChanges(_memory_body(changes=True)):  # type: ignore[misc]
    """What to change; a field that is not here stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


class NewMemories(Body):
    """Many things to remember: all are checked before any is stored."""

    items: Annotated[list[NewMemoryItem], Field(min_length=1, max_length=10_000)]


class Ask(ReadQuestion):
    """A question to lasting memories."""

    query: Query
    top_k: Count = 3
    min_score: Annotated[float, Field(ge=-1e9, le=1e9)] | None = None
    filters: Filters = None
    mode: RecallMode = "hybrid"
    as_of: Time | None = None
    explain: bool = False
    min_confidence: Share | None = None
    timeout: Seconds | None = None


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


class SearchQuestion(ReadQuestion):
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
    since: DayOrTime | None = None
    until: DayOrTime | None = None
    speaker: Name | None = None
    project: Name | None = None
    tags: Tags = []
    exclude: Annotated[list[str], Field(max_length=1_000)] = []
    min_confidence: Share | None = None
    timeout: Seconds | None = None


class ContradictionQuery(Parameters):
    """Which contradictions: the open or the settled ones."""

    settled: bool = False
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50


class Reopening(Body):
    """Two memories with a settled contradiction."""

    id: Name
    other_id: Name


class Settling(Reopening):
    """The verdict on two memories: `id` replaces `other_id`, both hold, or `id` is wrong."""

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
    action: Action | None = None
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


class TurnQuestion(ReadQuestion):
    """A question to conversations: one of them, or all."""

    query: Query
    conversation_id: Name | None = None
    top_k: Count | None = None
    budget: Annotated[int | None, Field(ge=0, le=1_000_000)] = None
    exclude: Annotated[list[str], Field(max_length=1_000)] = []
    mode: RecallMode = "hybrid"
    since: DayOrTime | None = None
    until: DayOrTime | None = None
    speaker: Name | None = None
    role: TurnRole | None = None
    min_confidence: Share | None = None
    whole: bool = False
    timeout: Seconds | None = None


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
    timeout: Seconds | None = None


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
        limits = {field.name: getattr(self, field.name) for field in fields(Budget)}
        return replace(Budget(), **{n: v for n, v in limits.items() if v is not None})


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


class DocumentNameQuery(Parameters):
    """Which document, by its name."""

    name: Name


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


class RemovedDevice(Body):
    """A device that is to be removed."""

    device: Annotated[str, Field(min_length=1, max_length=200)]
