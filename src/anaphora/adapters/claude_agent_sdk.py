"""Memory for agents of the Claude Agent SDK, by its hooks.

    options = ClaudeAgentOptions(hooks=memory_hooks(memory))

The SDK runs Claude Code, so the hooks are those that `anaphora setup claude-code` installs, in the
program's own process: with a session's first prompt what holds and the last sessions, with each
prompt what bears on it, before a compaction and at the end of a turn the transcript comes in.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from anaphora.api.memory import Memory
from anaphora.errors import AnaphoraError, MissingExtra
from anaphora.features.coding_agents.hooks.session import SessionHooks

try:
    from claude_agent_sdk import HookMatcher
except ImportError as error:
    raise MissingExtra("", "claude-agent-sdk") from error

__all__ = ["memory_hooks"]

CLIENT: Final = "claude-agent-sdk"
_EVENTS: Final = ("UserPromptSubmit", "PreCompact", "Stop")
_log = logging.getLogger("anaphora")


def memory_hooks(memory: Memory) -> dict[Any, list[HookMatcher]]:
    """The hooks for `ClaudeAgentOptions(hooks=…)`, over one namespace of a memory.

    To join them with hooks of your own, put both matchers into the list of their event. A hook runs
    in a worker thread, and never fails the agent: what goes wrong is logged ("anaphora"), and the
    prompt goes on without memory.
    """
    answer = _Answers(memory)
    return {event: [HookMatcher(hooks=[cast("Any", answer)])] for event in _EVENTS}


class _Answers:
    """The callback of every event."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._begun: set[str] = set()
        # Background work is part of the call here: a program may end right after.
        self._hooks = SessionHooks(
            memory,
            user=Path.home(),
            background=_log_failure,
            clock=time.time,
            reread=0.0,
        )

    async def __call__(
        self, event_data: dict[str, Any], tool_use_id: str | None, context: object
    ) -> dict[str, Any]:
        return await asyncio.to_thread(self._answer, event_data)

    def _answer(self, event_data: dict[str, Any]) -> dict[str, Any]:
        event = str(event_data.get("hook_event_name", ""))
        texts: list[str] = []
        session = str(event_data.get("session_id", ""))
        if event == "UserPromptSubmit" and session and session not in self._begun:
            # The SDK has no event for a start: a session begins with its first prompt here.
            self._begun.add(session)
            texts.append(self._text({**event_data, "hook_event_name": "SessionStart"}))
        texts.append(self._text(event_data))
        text = "\n".join(part for part in texts if part)
        if not text:
            return {}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}

    def _text(self, event_data: dict[str, Any]) -> str:
        body = json.dumps(event_data).encode()
        reply = _log_failure(lambda: self._hooks.answer(CLIENT, body))
        if not reply:
            return ""
        return str(json.loads(reply)["hookSpecificOutput"]["additionalContext"])


def _log_failure(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (AnaphoraError, OSError):
        _log.exception("a hook of the agent goes on without memory")
        return None
