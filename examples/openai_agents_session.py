"""An agent of OpenAI Agents that remembers its session across restarts, and far beyond its window.

Runs without a key and without a network: the model is a stand-in that says what it can see. Put a
real one in its place.

    python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.items import TResponseStreamEvent
from agents.models.interface import Model
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from anaphora import Memory
from anaphora.adapters.openai_agents import AnaphoraSession


class StandIn(Model):
    """A model that counts what it was given."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """One message that says how many items the model saw."""
        given = args[1] if len(args) > 1 else kwargs["input"]
        seen = 1 if isinstance(given, str) else len(given)
        text = ResponseOutputText(text=f"I see {seen} items.", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        """Not needed here."""
        raise NotImplementedError


async def main(home: str) -> None:
    """Talk twice, as if in two processes, then recall."""
    set_tracing_disabled(True)
    agent = Agent(name="helper", model=StandIn())
    for said in ("Our staging database listens on port 5433.", "Thanks!"):
        with Memory.open(home) as memory:
            session = AnaphoraSession("support-17", memory)
            result = await Runner.run(agent, said, session=session)
            print(result.final_output)
    with Memory.open(home) as memory:
        for hit in memory.recall_conversation("support-17", "which port is staging on?", top_k=1):
            print("recalled:", hit.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
