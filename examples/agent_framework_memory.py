"""An agent of Microsoft's Agent Framework that recalls what was said in other sessions.

Runs without a key and without a network: the client is a stand-in that says back what it was given
beside the question. Put a real one in its place.

    python examples/agent_framework_memory.py
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

# The framework names itself and its features to the services that it calls; here nothing does.
os.environ.setdefault("AGENT_FRAMEWORK_USER_AGENT_DISABLED", "true")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    FunctionInvocationLayer,
    Message,
)

from anaphora import AsyncMemory
from anaphora.adapters.agent_framework import AnaphoraContextProvider


class StandIn(FunctionInvocationLayer, BaseChatClient):
    """A client whose model answers with the recalled lines that it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Awaitable[ChatResponse]:
        self.seen.append(list(messages))
        return self._answer(messages)

    async def _answer(self, messages: Sequence[Message]) -> ChatResponse:
        lines = "\n".join(one.text for one in messages[:-1]).splitlines()
        recalled = [line for line in lines if line.startswith("- ")]
        said = "\n".join(recalled[:1]) or "I know nothing of that."
        return ChatResponse(messages=[Message(role="assistant", contents=[said])])


async def main(home: str) -> None:
    """Say something in one session, ask in another."""
    async with AsyncMemory.open(home) as memory:
        await memory.ready()
        agent = Agent(StandIn(), context_providers=[AnaphoraContextProvider(memory)])
        for session, said in (
            ("monday", "The blue van is Greta's."),
            ("tuesday", "whose is the blue van?"),
        ):
            answer = await agent.run(said, session=agent.create_session(session_id=session))
            print(f"{session}: {answer.text}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
