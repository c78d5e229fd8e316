"""An agent of the Claude Agent SDK that gets what bears on a prompt from earlier sessions.

Runs without a key and without a network: a stand-in takes the place of Claude Code, calls the hooks
as it does, and says what it was given. Without `transport=` the SDK starts the real one.

    python examples/claude_agent_memory.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport

from anaphora import Memory
from anaphora.adapters.claude_agent_sdk import memory_hooks


class StandIn(Transport):
    """Claude Code's side of the SDK's control protocol, as far as hooks go."""

    def __init__(self, session: str, folder: Path) -> None:
        self._told = {
            "session_id": session,
            "transcript_path": str(folder / f"{session}.jsonl"),
            "cwd": str(folder),
        }
        self._hooks: dict[str, Any] = {}
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def write(self, data: str) -> None:
        """What the SDK says: its hooks at the beginning, then the answer of each."""
        said = json.loads(data)
        if said["type"] == "control_request":
            self._hooks = said["request"].get("hooks") or self._hooks
            answer = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            await self._out.put({"type": "control_response", "response": answer})
        elif said["type"] == "control_response":
            answer = said["response"]
            self._answers.pop(answer["request_id"]).set_result(answer.get("response") or {})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """What the SDK hears."""
        while (message := await self._out.get()) is not None:
            yield message

    async def close(self) -> None:
        """End the reading."""
        await self._out.put(None)

    def is_ready(self) -> bool:
        """It always is."""
        return True

    async def end_input(self) -> None:
        """Nothing waits for it."""

    async def tell(self, **event: Any) -> str:
        """Call the hooks of an event; the context that they add."""
        added = []
        for matcher in self._hooks.get(event["hook_event_name"], []):
            for callback in matcher["hookCallbackIds"]:
                number = f"call-{callback}-{len(self._answers)}"
                answered = asyncio.get_running_loop().create_future()
                self._answers[number] = answered
                request = {
                    "subtype": "hook_callback",
                    "callback_id": callback,
                    "input": {**self._told, **event},
                    "tool_use_id": None,
                }
                await self._out.put(
                    {"type": "control_request", "request_id": number, "request": request}
                )
                answer = await answered
                added.append(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))
        return "\n".join(text for text in added if text)


async def main(folder: Path) -> None:
    """Something is known already; a prompt gets it."""
    with Memory.open(folder / "memory") as memory:
        memory.ready()
        memory.remember("The staging database of the ferry shop listens on port 5439.")
        cli = StandIn("11111111-aaaa-4bbb-8ccc-000000000001", folder)
        options = ClaudeAgentOptions(hooks=memory_hooks(memory))
        async with ClaudeSDKClient(options=options, transport=cli):
            asked = "Which port is the staging database of the ferry shop on?"
            print(await cli.tell(hook_event_name="UserPromptSubmit", prompt=asked))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
