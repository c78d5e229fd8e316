"""The schemas of requests.

Bodies and parameters are validated before a memory is called: their fields are those of the facade,
nothing is converted (a number in quotes is no number), and unknown fields are refused. The schemas
of answers are in `shapes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
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

from anaphora.values.conversations import (
    READ_AWAITED,
    READ_MOST,
    RecallMode,
    TurnRole,
)
from anaphora.values.memories import (
    MEMORY_FIELDS,
    MemoryType,
    NewMemory,
    Verdict,
)

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
VISIBLE: Final = r"[^\s\x00-\x20\x7f-\xa0]"
"""The pattern of a text with at least one visible character."""


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
Text = Annotated[str, Field(min_length=1, pattern=VISIBLE)]
Name = Annotated[str, Field(min_length=1, max_length=1024, pattern=VISIBLE)]
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
        return {
            name: argument.to_argument() if isinstance(argument, Body) else argument
            for name, argument in arguments.items()
        }

    def to_argument(self) -> Any:
        """As an argument of the facade, where it is a part of another body."""
        return self


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
    kinds: Annotated[list[str], Field(min_length=1, max_length=20)] | None = None
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


class ImportQuery(Parameters):
    """How to read what is imported. Without a format it is recognised.

    `name` is the file's own: notes, and chats without an id, are known by it.
    """

    format: str | None = None
    again: bool = False
    name: Annotated[str, Field(max_length=255)] = ""
