"""The hooks of each client: its events, their fields, and the form of the answer.

Claude Code, Codex and Gemini CLI take text as `hookSpecificOutput.additionalContext`, Cursor as
`additional_context`. Codex has no event for the end of a session, so its transcript is read at the
end of each turn. Cursor documents text at the start only, but new versions take it with a prompt,
too. VS Code takes text at the start only, and has two spellings for its fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

EventKind = Literal["start", "prompt", "before_compaction", "after_compaction", "turn_end", "end"]

Style = Literal["nested", "flat"]


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of a client's session.

    `name` is the client's own name of the event; `prompt` is what the user typed, for a prompt.
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
    """One client's hooks: its events, the form of answers, the importer for its transcripts.

    `answered` are the events whose answer may carry text; `silence` is printed if there is nothing
    to say.
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
        # In a program that embeds it there is no event for the start or the end of a session, and
        # what a compaction removed is restored with the next prompt.
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
        # The form of its transcripts is undocumented, so they are not read automatically.
        HookProtocol(
            "vscode",
            {"SessionStart": "start"},
            "vscode_copilot",
            frozenset({"start"}),
        ),
    )
}
"""The clients that have hooks."""

# VS Code's fields, which its newer versions spell as other clients do.
_SNAKE: Final = {"hookEventName": "hook_event_name", "sessionId": "session_id"}
# How clients mark a session that continues after a compaction.
_COMPACTED: Final = ("compact", "compress")
# A prompt may be a pasted file, of which only the beginning and the end are used.
_PROMPT: Final = 20_000


def read_payload(body: bytes) -> dict[str, Any]:
    """What a client tells of an event, by the names that most clients have. ValueError."""
    payload = json.loads(body or b"{}")
    if not isinstance(payload, dict):
        raise ValueError("the hook's JSON is not an object")
    return {str(_SNAKE.get(key, key)): content for key, content in payload.items()}


def operation_of(request: Mapping[str, Any]) -> str:
    """The name of a request's event in the log of incidents; unknown names are left out."""
    client, event = str(request.get("client", "")), ""
    with suppress(ValueError, RecursionError):
        event = str(read_payload(request.get("body", b"")).get("hook_event_name"))
    if client not in PROTOCOLS:
        return ""
    return f"{client} {event}" if event in PROTOCOLS[client].events else client


def read_event(client: str, payload: Mapping[str, Any], user: Path) -> HookEvent | None:
    """Parse a client's event; None for one that does not concern memory.

    `user` is the user's folder, where some clients keep transcripts without naming them.
    """
    protocol = PROTOCOLS[client]
    name = _text(payload, "hook_event_name")
    kind = protocol.events.get(name)
    session = _text(payload, "session_id") or _text(payload, "conversation_id")
    if kind is None or not session:
        return None
    if kind == "start" and _text(payload, "source") in _COMPACTED:
        kind = "after_compaction"
    roots = payload.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    directory = _text(payload, "cwd") or root
    transcript = _text(payload, "transcript_path")
    if client == "cursor" and not transcript:
        # Cursor has two layouts for the transcripts of sessions.
        project = re.sub(r"[^A-Za-z0-9]", "-", directory.lstrip("/\\"))
        if project and re.fullmatch(r"[A-Za-z0-9._-]+", session):
            folder = user / ".cursor" / "projects" / project / "agent-transcripts"
            nested_path = folder / session / f"{session}.jsonl"
            transcript = str(nested_path if nested_path.is_file() else folder / f"{session}.jsonl")
    prompt = _text(payload, "prompt")
    if len(prompt) > _PROMPT:
        prompt = f"{prompt[: _PROMPT // 2]}\n{prompt[-_PROMPT // 2 :]}"
    return HookEvent(client, kind, name, session, directory, transcript, prompt)


def other_transcripts(event: HookEvent) -> tuple[Path, str, str] | None:
    """Where a client keeps transcripts: a folder, a pattern, and the name of this session's own.

    None if none can be read: VS Code's have an undocumented form.
    """
    transcript = Path(event.transcript).expanduser() if event.transcript else None
    if transcript is None or not transcript.parent.is_dir() or event.client == "vscode":
        return None
    folder, pattern, days = transcript.parent, "*.jsonl", transcript.parts[-4:-1]
    if len(days) == 3 and all(part.isdecimal() for part in days):
        # Codex has folders by year, month and day.
        folder, pattern = transcript.parents[3], "[0-9]*/[0-9]*/[0-9]*/*.jsonl"
    elif event.client == "cursor" and folder.name == transcript.stem:
        # Cursor may have a folder for each session.
        folder, pattern = transcript.parents[1], "*/*.jsonl"
    elif event.client == "gemini":
        # Older files of Gemini CLI end in .json.
        pattern = "*.json*"
    return folder, pattern, transcript.stem


def answer(event: HookEvent, text: str) -> str:
    """What to print for the client; "" for nothing."""
    protocol = PROTOCOLS[event.client]
    if not text or event.kind not in protocol.answered:
        return protocol.silence
    if protocol.style == "flat":
        fields: dict[str, Any] = {"additional_context": text}
        if event.kind == "prompt":
            fields = {"continue": True, **fields}
        return json.dumps(fields)
    hook_output = {"hookEventName": event.name, "additionalContext": text}
    return json.dumps({"hookSpecificOutput": hook_output})


def _text(payload: Mapping[str, Any], name: str) -> str:
    content = payload.get(name)
    return content.strip() if isinstance(content, str) else ""
