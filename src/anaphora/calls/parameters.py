"""What the parameters of calls mean, and which values a request may give them.

A name means the same in every call, unless the description of a call says otherwise:
`@operation(..., parameters={"budget": Parameter(...)})`. The schemas of REST and MCP, the options
of the command line and the reference are derived from it. Plain data, without a library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from anaphora.values.conversations import READ_AWAITED, READ_MOST
from anaphora.values.memories import MEMORY_FIELDS

VISIBLE: Final = r"[^\s\x00-\x20\x7f-\xa0]"
"""The pattern of a text with at least one visible character."""

QUERY: Final = "What to look for, in your own words."
FILTER_EXAMPLE: Final = '{"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}'


class Parameter(NamedTuple):
    """A parameter of a call: its meaning, and the values that a request may give it.

    `least` and `most` bound a number, or the characters of a text, or the members of a list;
    `pattern` must occur in a text. `member` describes the members of a list. Of these bounds, a
    caller in the same process is held to `least` of numbers alone. `day`: surfaces also take a day.
    """

    meaning: str = ""
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    member: Parameter | None = None
    day: bool = False


def name_parameter(meaning: str) -> Parameter:
    """A name, key or id: 1 to 1,024 characters, not all blank."""
    return Parameter(meaning, 1, 1024, VISIBLE)


def text_parameter(meaning: str) -> Parameter:
    """A text that must say something. A request's own size limits its length."""
    return Parameter(meaning, 1, None, VISIBLE)


def index_parameter(meaning: str) -> Parameter:
    """A position, from 0."""
    return Parameter(meaning, 0, 2**31 - 1)


def token_parameter(meaning: str, least: int = 0) -> Parameter:
    """A number of tokens."""
    return Parameter(meaning, least, 1_000_000)


def tags_parameter(meaning: str) -> Parameter:
    """At most 1,000 words to sort or filter by."""
    return Parameter(meaning, None, 1_000, member=name_parameter(""))


_OF_MEMORIES: Final[Mapping[str, Callable[[str], Parameter]]] = {
    **dict.fromkeys(("text", "id", "path"), name_parameter),
    "tags": tags_parameter,
    "number": index_parameter,
}

PARAMETERS: Final[Mapping[str, Parameter]] = {
    **{
        name: _OF_MEMORIES.get(field.kind, Parameter)(field.meaning)
        for name, field in MEMORY_FIELDS.items()
    },
    "text": text_parameter("The text; keys and card numbers are redacted."),
    "as_of": Parameter("Answer as of this moment in the past."),
    "conversation_id": name_parameter("The conversation."),
    "cursor": Parameter("The `cursor` of the previous page; without it, the first page."),
    "dry_run": Parameter("Report what would be forgotten; change nothing."),
    "exclude": Parameter(
        "Texts the model already sees; they are removed before the budget is filled.", None, 1_000
    ),
    "explain": Parameter("Also return what was rejected, each with the reason."),
    "filters": Parameter("A filter; applied before results are cut to the limit."),
    "history": Parameter("Also past versions."),
    "id": name_parameter("The memory."),
    "importance": Parameter("1 to 5; higher ranks slightly before equal notes.", 1, 5),
    "kind": Parameter("What kind of note it is."),
    "last": index_parameter("Only this many of its last turns; by default all."),
    "limit": Parameter("At most this many.", 1, 1_000),
    "min_confidence": Parameter(
        "Return nothing if the probability that a result answers the question is lower: 0 to 1, "
        "by default a calibrated floor. 0 shows the nearest, however far.",
        0,
        1,
    ),
    "min_score": Parameter(
        "Leave out lower scores. 0 also returns memories that have nothing in common with the "
        "question; by default they are left out unless there are filters."
    ),
    "mode": Parameter(
        "`hybrid`: semantic and keyword; `words`: keyword only (BM25); `vector`: cosine only."
    ),
    "other_id": name_parameter("The other memory of the two."),
    "project": name_parameter("Name, id or folder of the project; without one, all."),
    "question": Parameter(f"{QUERY} A blank question returns nothing."),
    "read": Parameter(
        "How many of the best candidates are read together with the question: 0 (none) to "
        f"{READ_MOST}; in a request {READ_AWAITED} by default. None without a reader "
        "(`ANAPHORA_READER`).",
        0,
        READ_MOST,
    ),
    "since": Parameter(
        "Only results from this time on; a day counts from its beginning.", day=True
    ),
    "soft": Parameter("Keep the history, only leave it out of recall."),
    "speaker": name_parameter("Only turns by this speaker: the name, or its first word."),
    "subject": name_parameter("What it is about."),
    "timeout": Parameter(
        "Time limit in seconds; after it, keywords alone answer, and the answer says so.", 0, 3_600
    ),
    "top_k": Parameter("At most this many hits.", 1, 1_000),
    "undoable": Parameter(
        "Hide it at once and erase it after a day; until then it can be restored."
    ),
    "until": Parameter("Only results before this time; a day counts to its end.", day=True),
    "verdict": Parameter(
        "The verdict: `id` `replaces` the other, they `both_hold`, or `id` is `wrong`."
    ),
    "whole": Parameter(
        "Return long turns in full instead of a passage: the best always, others if they fit."
    ),
}
"""The parameters that mean the same in every call, by name."""

_NOTHING: Final = Parameter()


def described_as(name: str, own: Mapping[str, Parameter]) -> Parameter:
    """What a parameter is in a call that says `own` of its parameters."""
    return own.get(name) or PARAMETERS.get(name, _NOTHING)


class CallParameter(NamedTuple):
    """One parameter of one call, with its type and default. `default` is `...` if it is required.

    `optional`: None may be passed, and `annotation` is the type of other arguments.
    """

    name: str
    annotation: Any
    default: Any
    optional: bool
    described: Parameter
