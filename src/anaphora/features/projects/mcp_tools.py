"""The tools of projects for coding agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, get_args

from anaphora.api.memory import Memory
from anaphora.features.projects.values import (
    DiaryEntry,
    Quality,
    RecallPackage,
    WarmUp,
)
from anaphora.ingest.secrets.masking import mask
from anaphora.surfaces.mcp_server.schemas import (
    arguments,
    enveloped,
    result,
    text,
)
from anaphora.surfaces.mcp_server.tool import Answer, Arguments, CallContext, Tool
from anaphora.surfaces.wire import plain

NOTHING_YET: Final = "Nothing is stored yet that a new session should know."

_PROJECT: Final = "Name or folder; default: the open one, else all."


def recall_context(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Collect what a task in a project needs."""
    from anaphora.features.projects.recall.package import render_package

    package = mask(memory.recall_context(**context.in_project(arguments)))
    package = replace(package, degraded=(*context.degraded, *package.degraded))
    return Answer(plain(package), render_package(package))


def warm_up(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Collect what a new session should know."""
    from anaphora.features.projects.recall.package import HEADER
    from anaphora.features.projects.recall.warm_up import render_warm_up

    # A named project overrides the folder in which the session starts.
    directory = None if "project" in arguments else context.directory
    warm = mask(memory.warm_up(**context.in_project(arguments), directory=directory))
    warm = replace(warm, degraded=(*context.degraded, *warm.degraded))
    text = render_warm_up(warm)
    return Answer(plain(warm), text if text != HEADER else NOTHING_YET)


def save_diary(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Store a diary entry."""
    report = memory.write_diary(**context.in_project(arguments))
    return Answer(plain(report), _stored_text("diary entry", report.id, report.redacted))


def observe(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """Store a note about the project."""
    report = memory.observe(**context.in_project(arguments))
    return Answer(
        plain(report), _stored_text(report.kind.replace("_", " "), report.id, report.redacted)
    )


def _stored_text(what: str, of: str, redacted: Sequence[str]) -> str:
    redaction_note = f" Redacted before storing: {', '.join(redacted)}." if redacted else ""
    return f"Stored the {what} {of}.{redaction_note}"


TOOLS: Final = (
    Tool(
        "recall_context",
        recall_context,
        60,
        "For a task in a project: files and symbols to look at first, notes, decisions, relations.",
        {
            "focus": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "description": "The task; name files and symbols.",
            },
            **arguments(
                Memory.recall_context,
                "project budget include_sources",
                {
                    "project": {"description": _PROJECT},
                    "budget": {"description": "Tokens.", "maximum": 100_000},
                    "include_sources": {"description": "Also scores and relations."},
                },
            ),
        },
        enveloped(
            result(
                RecallPackage,
                "brief primary_targets memories graph history quality tokens? degraded",
                quality={"enum": list(get_args(Quality))},
            )
        ),
        required=("focus",),
        in_project=True,
        indexing=True,
    ),
    Tool(
        "warm_up",
        warm_up,
        70,
        "What a new session should know: core block, rules, decisions, changes, last sessions, "
        "the project's shape.",
        arguments(
            Memory.warm_up,
            "topic project",
            {"topic": {"description": ""}, "project": {"description": ""}},
        ),
        enveloped(
            result(
                WarmUp,
                "constraints preferences decisions blockers diary highlights? shape core? "
                "core_left_out? changed? sessions? facts? degraded?",
            )
        ),
        in_project=True,
        indexing=True,
    ),
    Tool(
        "save_diary",
        save_diary,
        90,
        "What was done, learned, and is next, in 80 to 160 words: the next session reads it.",
        {
            "summary": text("", maxLength=65_536),
            **arguments(
                Memory.write_diary,
                "subject tags project",
                {
                    "subject": {"description": ""},
                    "tags": {"description": ""},
                    "project": {"description": ""},
                },
            ),
        },
        enveloped(result(DiaryEntry, "id redacted")),
        required=("summary",),
        read_only=False,
        in_project=True,
    ),
    Tool(
        "observe",
        observe,
        110,
        "Store a note for later tasks in this project: a decision, a constraint, a blocker, an "
        "insight about the code. A decision may supersede an older one.",
        arguments(
            Memory.observe,
            "text kind importance tags source supersedes project",
            {
                "kind": {"description": ""},
                "importance": {"description": "1 to 5."},
                "source": {"description": "Where it comes from, e.g. a path."},
                "supersedes": {"description": "The id of a note that this one replaces."},
                "project": {"description": _PROJECT},
            },
        ),
        enveloped(result(DiaryEntry, "id redacted")),
        required=("text",),
        by_default=False,
        read_only=False,
        in_project=True,
    ),
)
