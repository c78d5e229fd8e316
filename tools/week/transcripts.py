"""The transcripts of a session as its client writes them: records, one a line, in its folder."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tools.week.story import Prompt, Session

_SPACE: Final = uuid.UUID("6f0c1f6c-5f0c-4c1e-9a0e-3d3c5b2a7e11")
_ANSWER: Final = timedelta(seconds=40)


class Transcript:
    """One session's file, which grows by a prompt and its answer at a time."""

    def __init__(self, session: Session, user: Path, project: Path) -> None:
        self.id = str(uuid.uuid5(_SPACE, session.id))
        self._session = session
        self._project = str(project)
        self._last: str | None = None
        self._count = 0
        self.path = self._place(user)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write(self._head(), session.at)

    def add(self, prompt: Prompt, context: str) -> None:
        """A prompt, what the hook put in beside it, the calls of tools, and the answer."""
        self._write(self._said(prompt, context), prompt.at + _ANSWER)

    def _place(self, user: Path) -> Path:
        at = self._session.at
        if self._session.client == "claude-code":
            folder = self._project.replace("/", "-")
            return user / ".claude" / "projects" / folder / f"{self.id}.jsonl"
        if self._session.client == "codex":
            name = f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
            return user / ".codex" / "sessions" / f"{at:%Y/%m/%d}" / name
        folder = hashlib.sha256(self._project.encode()).hexdigest()
        name = f"session-{at:%Y-%m-%dT%H-%M}-{self.id[:8]}.jsonl"
        return user / ".gemini" / "tmp" / folder / "chats" / name

    def _write(self, records: Iterator[dict[str, Any]], at: datetime) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        os.utime(self.path, (at.timestamp(), at.timestamp()))

    def _head(self) -> Iterator[dict[str, Any]]:
        at = _stamp(self._session.at)
        if self._session.client == "codex":
            head = {"id": self.id, "timestamp": at, "cwd": self._project, "originator": "codex_cli"}
            yield {"timestamp": at, "type": "session_meta", "payload": head}
        elif self._session.client == "gemini":
            yield {"sessionId": self.id, "projectHash": "p", "startTime": at, "lastUpdated": at}

    def _said(self, prompt: Prompt, context: str) -> Iterator[dict[str, Any]]:
        write = {"claude-code": self._claude, "codex": self._codex, "gemini": self._gemini}
        return write[self._session.client](prompt, context)

    def _claude(self, prompt: Prompt, context: str) -> Iterator[dict[str, Any]]:
        text = [{"type": "text", "text": prompt.text}]
        yield self._record(prompt.at, "user", message={"role": "user", "content": text})
        if context:
            attached = {
                "type": "hook_additional_context",
                "content": [context],
                "hookName": "UserPromptSubmit",
                "hookEvent": "UserPromptSubmit",
            }
            yield self._record(prompt.at, "attachment", attachment=attached)
        for tool, file in prompt.calls:
            key = f"toolu_{self._count}"
            use = {"type": "tool_use", "id": key, "name": tool, "input": self._given(tool, file)}
            result = {"type": "tool_result", "tool_use_id": key, "content": "ok"}
            yield self._record(
                prompt.at, "assistant", message={"role": "assistant", "content": [use]}
            )
            yield self._record(prompt.at, "user", message={"role": "user", "content": [result]})
        answer = [{"type": "text", "text": prompt.answer}]
        yield self._record(
            prompt.at + _ANSWER, "assistant", message={"role": "assistant", "content": answer}
        )

    def _record(self, at: datetime, kind: str, **more: Any) -> dict[str, Any]:
        self._count += 1
        key, above = str(uuid.uuid5(_SPACE, f"{self.id}/{self._count}")), self._last
        self._last = key
        return {
            "parentUuid": above,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._project,
            "sessionId": self.id,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "uuid": key,
            "timestamp": _stamp(at),
            **more,
        }

    def _codex(self, prompt: Prompt, context: str) -> Iterator[dict[str, Any]]:
        at, later = _stamp(prompt.at), _stamp(prompt.at + _ANSWER)
        yield _item(at, _message("user", "input_text", prompt.text))
        yield _event(at, {"type": "user_message", "message": prompt.text})
        if context:
            yield _item(at, _message("developer", "input_text", context))
        for tool, file in prompt.calls:
            self._count += 1
            key = f"call_{self._count}"
            arguments = json.dumps({"command": [tool.lower(), file]})
            call = {
                "type": "function_call",
                "name": "shell",
                "arguments": arguments,
                "call_id": key,
            }
            yield _item(at, call)
            yield _item(at, {"type": "function_call_output", "call_id": key, "output": "ok"})
        yield _item(later, _message("assistant", "output_text", prompt.answer))
        yield _event(later, {"type": "agent_message", "message": prompt.answer})

    def _gemini(self, prompt: Prompt, context: str) -> Iterator[dict[str, Any]]:
        self._count += 1
        calls = [
            {"id": f"{tool}-{self._count}", "name": tool, "args": {"file_path": file}}
            for tool, file in prompt.calls
        ]
        text = prompt.text if not context else f"{prompt.text}\n\n{context}"
        said: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("user", text, {}),
            ("gemini", prompt.answer, {"toolCalls": calls}),
        )
        for kind, words, more in said:
            at = _stamp(prompt.at + _ANSWER * (kind == "gemini"))
            content = [{"text": words}]
            yield {
                "id": f"{self._count}-{kind}",
                "timestamp": at,
                "type": kind,
                "content": content,
                **more,
            }

    def _given(self, tool: str, file: str) -> dict[str, str]:
        name = "command" if tool == "Bash" else "file_path"
        return {name: file if tool == "Bash" else f"{self._project}/{file}"}


def _message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _item(at: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": at, "type": "response_item", "payload": payload}


def _event(at: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": at, "type": "event_msg", "payload": payload}


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"
