"""A scripted client of each hook protocol, as the clients' own documents describe them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.commands import run_command_bytes

BEGAN = "2026-05-04T09:00:00Z"
PROGRAM = [sys.executable, "-m", "anaphora"]

# The fields that every event of a client has, as its documents list them, and its events' names.
CLIENTS: dict[str, dict[str, Any]] = {
    "claude-code": {
        "start": "SessionStart",
        "prompt": "UserPromptSubmit",
        "compact": "PreCompact",
        "end": "SessionEnd",
        "common": {"permission_mode": "default"},
        "compact_fields": {"trigger": "auto", "custom_instructions": ""},
        "end_fields": {"reason": "prompt_input_exit"},
    },
    "codex": {
        "start": "SessionStart",
        "prompt": "UserPromptSubmit",
        "compact": "PreCompact",
        "end": "Stop",
        "common": {"model": "gpt-5", "permission_mode": "default"},
        "compact_fields": {"trigger": "auto", "turn_id": "t1"},
        "end_fields": {"turn_id": "t2", "stop_hook_active": False, "last_assistant_message": "ok"},
    },
    "gemini": {
        "start": "SessionStart",
        "prompt": "BeforeAgent",
        "compact": "PreCompress",
        "end": "SessionEnd",
        "common": {"timestamp": "2026-05-04T09:00:00.000Z"},
        "compact_fields": {"trigger": "auto"},
        "end_fields": {"reason": "exit"},
    },
    "cursor": {
        "start": "sessionStart",
        "prompt": "beforeSubmitPrompt",
        "compact": "preCompact",
        "end": "sessionEnd",
        "common": {"generation_id": "g1", "model": "gpt-5", "cursor_version": "2026.09.01"},
        "compact_fields": {"trigger": "auto"},
        "end_fields": {"reason": "completed", "duration_ms": 10, "final_status": "completed"},
    },
}


@dataclass
class Agent:
    """One session of a client, whose hooks run as the client would run them."""

    client: str
    session: str
    directory: Path
    transcript: Path
    environ: dict[str, str]
    options: list[str] = field(default_factory=list)
    # What a plugin has the client run for each event, in a shell; without them, the program.
    commands: dict[str, str] = field(default_factory=dict)

    def start(self, source: str = "startup") -> str:
        """The text that the session begins with."""
        return self.tell("start", {"source": source, "is_background_agent": False})

    def prompt(self, text: str) -> str:
        """The text that comes with a prompt."""
        return self.tell("prompt", {"prompt": text})

    def tell(self, what: str, more: dict[str, Any]) -> str:
        """Tell of an event; the text that came back. The hook must end well."""
        known = CLIENTS[self.client]
        told: dict[str, Any] = {"hook_event_name": known[what], **known["common"], **more}
        told |= known.get(f"{what}_fields", {})
        if self.client == "cursor":
            told |= {"conversation_id": self.session, "workspace_roots": [str(self.directory)]}
        else:
            told |= {"session_id": self.session, "cwd": str(self.directory)}
        told["transcript_path"] = str(self.transcript)
        out = self.run(json.dumps(told).encode(), known[what])
        return self.text_of(out, known[what])

    def run(self, stdin: bytes, event: str = "") -> bytes:
        """What the hook prints; it must exit 0, and say nothing on standard error."""
        own = [*self.options, "hook", self.client]
        if not self.commands and self.environ.get("ANAPHORA_RESIDENT") == "0":
            # Nothing of the process outlives it: the shared imports do.
            done = run_command_bytes(*own, environ=self.environ, given=stdin)
        else:
            done = subprocess.run(
                ["/bin/sh", "-c", self.commands[event]] if self.commands else [*PROGRAM, *own],
                input=stdin,
                capture_output=True,
                timeout=60,
                env=self.environ,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return done.stdout

    def text_of(self, out: bytes, event: str) -> str:
        """The text in an answer, whose form must be the client's."""
        if self.client in {"claude-code", "codex"}:
            if not out.strip():
                return ""
            (inner,) = json.loads(out).values()
            assert json.loads(out).keys() == {"hookSpecificOutput"}
            assert inner.keys() == {"hookEventName", "additionalContext"}
            assert inner["hookEventName"] == event
            return str(inner["additionalContext"])
        value = json.loads(out)
        if self.client == "gemini":
            assert value.keys() <= {"hookSpecificOutput"}
            inner = value.get("hookSpecificOutput", {})
            assert not inner or inner["hookEventName"] == event
            return str(inner.get("additionalContext", ""))
        assert value.keys() <= {"additional_context", "continue"}
        assert value.get("continue", True) is True
        return str(value.get("additional_context", ""))


def environment(root: Path, *, resident: str = "0") -> dict[str, str]:
    """The variables of a user whose folders all lie in `root`."""
    for name in ("home", "run", "state"):
        (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TZ"}}
    return kept | {
        "HOME": str(root / "home"),
        "XDG_RUNTIME_DIR": str(root / "run"),
        "XDG_STATE_HOME": str(root / "state"),
        "ANAPHORA_HOME": str(root / "memory"),
        "ANAPHORA_RESIDENT": resident,
        "ANAPHORA_READER": "off",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def write_transcript(
    client: str, path: Path, session: str, directory: Path, said: list[str]
) -> None:
    """A transcript in the client's own form: the user's words, each answered."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines: list[dict[str, Any]] = []
    if client == "codex":
        head = {"id": session, "timestamp": BEGAN, "cwd": str(directory)}
        lines.append({"timestamp": BEGAN, "type": "session_meta", "payload": head})
    if client == "gemini":
        lines.append({"sessionId": session, "projectHash": "p", "startTime": BEGAN})
    for number, text in enumerate(said):
        for role, words in (("user", text), ("assistant", f"Noted ({number}).")):
            lines.append(_line(client, session, directory, number, role, words))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _line(
    client: str, session: str, directory: Path, number: int, role: str, words: str
) -> dict[str, Any]:
    key = f"{number}{role[0]}"
    at = f"2026-05-04T09:{number:02d}:0{int(role == 'assistant')}Z"
    blocks = [{"type": "text", "text": words}]
    if client == "claude-code":
        return {
            "type": role,
            "uuid": f"{session}-{key}",
            "sessionId": session,
            "cwd": str(directory),
            "gitBranch": "main",
            "timestamp": at,
            "message": {"role": role, "content": blocks},
        }
    if client == "codex":
        kind = "input_text" if role == "user" else "output_text"
        payload = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        return {"timestamp": at, "type": "response_item", "payload": payload}
    if client == "gemini":
        kind = "user" if role == "user" else "gemini"
        return {"id": key, "timestamp": at, "type": kind, "content": [{"text": words}]}
    return {"role": role, "message": {"content": blocks}}
