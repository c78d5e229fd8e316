"""The hooks of each client: which events it has, what it tells of them, and how it is answered.

Claude Code, Codex and Gemini CLI take text as `hookSpecificOutput.additionalContext`, Cursor as
`additional_context`. Codex has no event for the end of a session, so that its transcript comes in
at the end of each turn; Cursor promises to take text at the start alone, and takes it with a prompt
where it is new enough. VS Code takes text at the start alone, and writes its fields in two ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

EventKind = Literal["start", "prompt", "before_compaction", "after_compaction", "turn_end", "end"]

Style = Literal["nested", "flat"]


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a client tells: which session, where, and what has happened to it.

    `name` is the client's own name of the event; `prompt` what the user typed, for a prompt.
    """

    client: str
    kind: EventKind
    name: str
    session: str
    directory: str = ""
    transcript: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class HookProtocol:
    """One client's hooks: its events, how it is answered, which importer reads its transcripts.

    `answered` are the events whose answer may carry text; `silence` is what is printed where there
    is nothing to say.
    """

    client: str
    events: Mapping[str, EventKind]
    format: str
    answered: frozenset[EventKind]
    style: Style = "nested"
    silence: str = ""


PROTOCOLS: Final[Mapping[str, HookProtocol]] = {
    one.client: one
    for one in (
        HookProtocol(
            "claude-code",
            {
                "SessionStart": "start",
                "UserPromptSubmit": "prompt",
                "PreCompact": "before_compaction",
                "SessionEnd": "end",
            },
            "claude_code",
            frozenset({"start", "prompt", "after_compaction"}),
        ),
        # In a program that embeds it: no event for the start or the end of a session comes, and
        # what a compaction took is brought back with the next prompt.
        HookProtocol(
            "claude-agent-sdk",
            {
                "SessionStart": "start",
                "UserPromptSubmit": "prompt",
                "PreCompact": "before_compaction",
                "Stop": "turn_end",
            },
            "claude_code",
            frozenset({"start", "prompt"}),
        ),
        HookProtocol(
            "codex",
            {
                "SessionStart": "start",
                "UserPromptSubmit": "prompt",
                "PreCompact": "before_compaction",
                "Stop": "turn_end",
            },
            "codex",
            frozenset({"start", "prompt", "after_compaction"}),
        ),
        HookProtocol(
            "gemini",
            {
                "SessionStart": "start",
                "BeforeAgent": "prompt",
                "PreCompress": "before_compaction",
                "SessionEnd": "end",
            },
            "gemini_cli",
            frozenset({"start", "prompt"}),
            silence="{}",
        ),
        HookProtocol(
            "cursor",
            {
                "sessionStart": "start",
                "beforeSubmitPrompt": "prompt",
                "preCompact": "before_compaction",
                "stop": "turn_end",
                "sessionEnd": "end",
            },
            "cursor",
            frozenset({"start", "prompt"}),
            style="flat",
            silence="{}",
        ),
        # Its transcripts have no documented form: what is said there does not come in by itself.
        HookProtocol(
            "vscode",
            {"SessionStart": "start"},
            "vscode_copilot",
            frozenset({"start"}),
        ),
    )
}
"""The clients that have hooks."""

# VS Code's fields, which its newer versions write as other clients do.
_SNAKE: Final = {"hookEventName": "hook_event_name", "sessionId": "session_id"}
# How the clients say that a session goes on after its context was compacted.
_COMPACTED: Final = ("compact", "compress")


def operation_of(client: str, event: str) -> str:
    """A client and its event as the log of incidents names them; what is not known is left out."""
    protocol = PROTOCOLS.get(client)
    if protocol is None:
        return ""
    return f"{client} {event}" if event in protocol.events else client


def read_event(client: str, told: Mapping[str, Any], user: Path) -> HookEvent | None:
    """The event that a client tells of; None for one that says nothing to memory.

    `user` is the user's folder, where clients keep transcripts that they do not name.
    """
    protocol = PROTOCOLS[client]
    if client == "vscode":
        told = {_SNAKE.get(key, key): value for key, value in told.items()}
    name = _text(told, "hook_event_name")
    kind = protocol.events.get(name)
    session = _text(told, "session_id") or _text(told, "conversation_id")
    if kind is None or not session:
        return None
    if kind == "start" and _text(told, "source") in _COMPACTED:
        kind = "after_compaction"
    roots = told.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    directory = _text(told, "cwd") or root
    transcript = _text(told, "transcript_path")
    if client == "cursor" and not transcript:
        transcript = _cursor_transcript(user, directory, session)
    return HookEvent(client, kind, name, session, directory, transcript, _text(told, "prompt"))


def answer(event: HookEvent, text: str) -> str:
    """What the client reads of standard output; "" for nothing at all."""
    protocol = PROTOCOLS[event.client]
    if not text or event.kind not in protocol.answered:
        return protocol.silence
    if protocol.style == "flat":
        told: dict[str, Any] = {"additional_context": text}
        if event.kind == "prompt":
            told = {"continue": True, **told}
        return json.dumps(told)
    inner = {"hookEventName": event.name, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": inner})


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    return value.strip() if isinstance(value, str) else ""


def _cursor_transcript(user: Path, directory: str, session: str) -> str:
    """Where Cursor keeps the transcript of a session: beside others of its folder, in two forms."""
    project = re.sub(r"[^A-Za-z0-9]", "-", directory.lstrip("/\\"))
    if not project or not re.fullmatch(r"[A-Za-z0-9._-]+", session):
        return ""
    folder = user / ".cursor" / "projects" / project / "agent-transcripts"
    nested = folder / session / f"{session}.jsonl"
    return str(nested if nested.is_file() else folder / f"{session}.jsonl")
