"""Every hook event of every client, as the client tells of it, with the answer's form and words.

Clients and events are those of the installed package. An event of a kind that is not known here
fails the gate.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.hooks.hook_desk import CLIENTS, write_transcript
from tools.gate.environments import Environment, User
from tools.gate.report import Report, must

__all__ = ["check_hooks"]

_RULE: Final = "Never drop a column of the berth table without a migration."
_FACT: Final = "The staging database listens on port 5433."
_PATIENCE: Final = 15.0
_PROTOCOLS: Final = """
import dataclasses, json
from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS
print(json.dumps({
    name: {
        "events": dict(one.events), "format": one.format, "answered": sorted(one.answered),
        "style": one.style, "silence": one.silence,
    }
    for name, one in PROTOCOLS.items()
}))
"""


@dataclass(slots=True)
class Client:
    """One client of the hooks, in one user's home."""

    name: str
    protocol: Mapping[str, Any]
    user: User
    sessions: int = 0

    def transcript(self, session: str, said: list[str]) -> Path:
        """A transcript in the client's own form."""
        path = self.user.home / "transcripts" / self.name / f"{session}.jsonl"
        write_transcript(self._form, path, session, self.user.work, said)
        return path

    @property
    def _form(self) -> str:
        known = {"claude_code": "claude-code", "codex": "codex", "gemini_cli": "gemini"}
        return known.get(self.protocol["format"], "cursor")

    def tell(self, event: str, session: str, transcript: Path | None, **more: Any) -> str:
        """The text with which an event is answered; "" for silence."""
        told = {
            **CLIENTS.get(self.name, {}).get("common", {}), "hook_event_name": event,
            "session_id": session, "conversation_id": session, "cwd": str(self.user.work),
            "workspace_roots": [str(self.user.work)], **more,
        }  # fmt: skip
        if transcript is not None:
            told["transcript_path"] = str(transcript)
        return self.text_of(self.send(json.dumps(told)), event)

    def send(self, stdin: str) -> str:
        """What the hook prints; it must end with 0 and say nothing on standard error."""
        done = self.user.run("anaphora", "hook", self.name, stdin=stdin)
        must(not done.stderr, f"on standard error: {done.stderr}")
        return done.stdout.strip()

    def text_of(self, out: str, event: str) -> str:
        """The text in an answer, whose form must be the client's."""
        if out == self.protocol["silence"]:
            return ""
        answer = json.loads(out)
        if self.protocol["style"] == "nested":
            must(answer.keys() == {"hookSpecificOutput"}, answer)
            inner = answer["hookSpecificOutput"]
            must(inner.keys() == {"hookEventName", "additionalContext"}, answer)
            must(inner["hookEventName"] == event, answer)
            return str(inner["additionalContext"])
        must(answer.keys() <= {"additional_context", "continue"}, answer)
        must(answer.get("continue", True) is True, answer)
        return str(answer["additional_context"])

    def new_session(self) -> str:
        """The id of another session."""
        self.sessions += 1
        return f"{self.name}-session-{self.sessions}"


def check_hooks(environment: Environment, report: Report) -> None:
    """Each event of each client, then input that is none."""
    user = environment.user("hooks")
    protocols = json.loads(user.run("python", "-c", _PROTOCOLS).stdout)
    user.run("anaphora", "core", "add", _RULE)
    user.run("anaphora", "remember", _FACT)
    for name, protocol in protocols.items():
        client = Client(name, protocol, user)
        for event, kind in protocol["events"].items():
            with report.check(f"{name} {event}"):
                must(kind in _EVENTS, f"an event of the unknown kind {kind}")
                _EVENTS[kind](client, event)
        with report.check(f"{name}: input that is no event"):
            _wrong(client)
    with report.check("two homes are kept apart"):
        _apart(environment, protocols)


def _start(client: Client, event: str) -> None:
    """The session begins with what every session should know."""
    text = client.tell(event, client.new_session(), None, source="startup")
    must(_RULE in text, f"the session begins with {text!r}")


def _prompt(client: Client, event: str) -> None:
    """A prompt brings what bears on it, and small talk brings nothing."""
    asked = "which port does the staging database listen on?"
    text = client.tell(event, client.new_session(), None, prompt=asked)
    must("5433" in text, f"{asked!r} brings {text!r}")
    quiet = client.tell(event, client.new_session(), None, prompt="thanks, go on")
    must(quiet == "", f"small talk brings {quiet!r}")


def _compaction(client: Client, event: str) -> None:
    """Before a compaction nothing is said; after it the session gets back what it lost."""
    session = client.new_session()
    lost = f"The berths of {client.name} are numbered from the lighthouse."
    transcript = client.transcript(session, [lost])
    text = client.tell(event, session, transcript, trigger="auto")
    must(text == "", f"a compaction is answered with {text!r}")
    kinds = {kind: name for name, kind in client.protocol["events"].items()}
    if "after_compaction" in client.protocol["answered"]:
        back = client.tell(kinds["start"], session, transcript, source="compact")
    else:
        back = client.tell(kinds["prompt"], session, transcript, prompt="go on with the berths")
    must("numbered from the lighthouse" in back, f"after the compaction comes {back!r}")


def _end(client: Client, event: str) -> None:
    """A session's words are found after it ended, or after a turn of it did."""
    session = client.new_session()
    said = f"The crane of {client.name} {event} was moved to pier seven on Friday."
    text = client.tell(event, session, client.transcript(session, [said]), reason="exit")
    must(text == "", f"an end is answered with {text!r}")

    def is_found() -> bool:
        words = f"when was the crane of {client.name} {event} moved?"
        hits = client.user.json("anaphora", "conversation", "recall", words, "--json")["hits"]
        return any(said in hit["text"] for hit in hits)

    _wait_until(is_found, f"{said!r} is not found")


_EVENTS: Final[Mapping[str, Callable[[Client, str], None]]] = {
    "start": _start,
    "prompt": _prompt,
    "before_compaction": _compaction,
    "turn_end": _end,
    "end": _end,
}


def _wrong(client: Client) -> None:
    """Input that is no event is met with silence: nothing may stop the client."""
    event = next(iter(client.protocol["events"]))
    for stdin in (
        "", "no JSON", "[]", "{}", json.dumps({"hook_event_name": "NoSuchEvent"}),
        json.dumps({"hook_event_name": event}),
        json.dumps({"hook_event_name": event, "session_id": 7, "cwd": ["x"]}),
    ):  # fmt: skip
        out = client.send(stdin)
        must(out == client.protocol["silence"], f"{stdin!r} is answered with {out!r}")


def _apart(environment: Environment, protocols: Mapping[str, Mapping[str, Any]]) -> None:
    """The process that hooks share shows no home what another one stores."""
    name, protocol = next(iter(protocols.items()))
    event = next(event for event, kind in protocol["events"].items() if kind == "start")
    user = environment.user("hooks")
    own = "Always ask Mara before the harbour is closed."
    user.run("anaphora", "core", "add", own)
    text = Client(name, protocol, user).tell(event, "elsewhere", None, source="startup")
    must(_RULE not in text, f"another home's rule is shown: {text!r}")
    must(own in text, f"the home's own rule is not shown: {text!r}")


def _wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Sessions come in behind the hook's answer."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        must(time.monotonic() < end, otherwise)
        time.sleep(0.2)
