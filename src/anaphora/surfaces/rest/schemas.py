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
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
)

from anaphora.api.memory import Memory
from anaphora.calls.operation import operation_of
from anaphora.calls.parameters import PARAMETERS, VISIBLE
from anaphora.values.memories import (
    MEMORY_FIELDS,
    MemoryType,
    NewMemory,
)

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)


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
Tags = Annotated[list[Name], Field(max_length=1_000)]
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
        meaning = spec.meaning or PARAMETERS[field.name].meaning
        if changes and (field.default is not None or spec.kind == "path"):
            # Optional in the body, but a memory always has it.
            members[field.name] = kind, Field(default_factory=lambda: None, description=meaning)
        elif changes or field.default is None:
            members[field.name] = kind | None, Field(None, description=meaning)
        else:
            default = ... if field.default is MISSING else field.default
            default = [] if default == () else default
            members[field.name] = kind, Field(default, description=meaning)
    return create_model("Body", __base__=Body, **members)


class NewMemoryBody(_memory_body(changes=False)):  # type: ignore[misc]
    """One thing to remember."""

    keep_secret: Annotated[
        bool, Field(description="Keep a secret in it; it never leaves the home unmasked.")
    ] = False


class NewMemoryItem(NewMemoryBody):
    """One of many things to remember, with options for programs that must store texts unchanged."""

    dedupe: Annotated[
        bool,
        Field(
            description="Whether a restatement reinforces the stored memory instead of being added."
        ),
    ] = True
    redact: Annotated[bool, Field(description="Whether keys and card numbers are redacted.")] = True
    guarded: Annotated[
        bool,
        Field(
            description="Refuse it unless what it supersedes is current and its path has no other "
            "value."
        ),
    ] = False


class MemoryChanges(_memory_body(changes=True)):  # type: ignore[misc]
    """What to change; a field that is not here stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


class NewMemories(Body):
    """Many things to remember: all are checked before any is stored."""

    items: Annotated[
        list[NewMemoryItem],
        Field(min_length=1, max_length=10_000, description="The memories, in order."),
    ]


class DeleteQuery(Parameters):
    """How to forget."""

    soft: bool = False
    undoable: bool = False


class ThreadQuery(Parameters):
    """How much of a conversation."""

    last: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class ReadyQuery(Parameters):
    """How long to wait."""

    timeout: Annotated[float, Field(ge=0, le=20, description="Wait at most this many seconds.")] = (
        10.0
    )


class PageQuery(Parameters):
    """A page of a listing."""

    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    cursor: str | None = None


class NewTurnBody(Body):
    """A turn to be kept."""

    role: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            pattern=r"^[\x21-\x7e]+$",
            description="Who speaks: `user`, `assistant`, `system`, `tool`, or another word.",
        ),
    ]
    text: Annotated[str, Field(description="The text, stored verbatim.")]
    intent_id: Annotated[
        str,
        Field(max_length=1024, description="An id of the caller's own, stored with the turn."),
    ] = ""
    ts: Annotated[Time | None, Field(description="When it was said; without it, now.")] = None
    speaker: Annotated[Name | None, Field(description="The speaker's name.")] = None


class AppendTurns(Body):
    """Turns for the end of a conversation, all or none of them."""

    title: Annotated[
        str,
        Field(
            max_length=1_000,
            description="The title of a conversation that begins with these turns.",
        ),
    ] = ""
    turns: Annotated[
        list[NewTurnBody],
        Field(
            min_length=1,
            max_length=1_000,
            description="In order; either all are stored or none.",
        ),
    ]


class SeedTitle(Body):
    """A title of one's own."""

    title: Annotated[
        str,
        Field(
            max_length=1_000,
            description="The title; if empty, the first question becomes the title again.",
        ),
    ]


_AGAIN = operation_of(Memory.import_).describe("again").meaning


class ImportQuery(Parameters):
    """How to read what is imported. Without a format it is recognised.

    `name` is the file's own, or its path in a folder: documents, notes, and chats without an id
    are known by it.
    """

    format: Annotated[
        str | None,
        Field(description="The importer's name; without it the format is detected."),
    ] = None
    again: Annotated[bool, Field(description=_AGAIN)] = False
    name: Annotated[str, Field(max_length=1_000, description="The name of the file.")] = ""
