"""An agent of Pydantic AI with a memory that outlives its runs, each user's apart.

Runs without a key and without a network: the model is a stand-in that keeps what it is told, looks
up what it is asked, and says what it was given. Put a real one in its place.

    python examples/pydantic_ai_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from anaphora import AsyncMemory
from anaphora.adapters.pydantic_ai import keep_run, memory_toolset, recall_history


def stand_in(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Where a model would think: a statement is remembered, a question answered from the prompt."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    said = [str(part.content) for part in last.parts if part.part_kind == "user-prompt"]
    if not said:
        return ModelResponse(parts=[TextPart("Noted.")])
    if said[-1].endswith("?"):
        recalled = [line for line in said[0].splitlines() if line.startswith("- ")]
        return ModelResponse(parts=[TextPart("\n".join(recalled) or "I do not know.")])
    return ModelResponse(parts=[ToolCallPart("remember", {"fact": said[-1]})])


def user_of(context: RunContext[str]) -> str:
    """Which namespace a run is about: here the dependencies are the user's name."""
    return context.deps


async def main(home: str) -> None:
    """Tell it something, and ask in other runs."""
    async with AsyncMemory.open(home) as memory:
        await memory.ready()
        agent = Agent(
            FunctionModel(stand_in),
            deps_type=str,
            toolsets=[memory_toolset(memory, namespace_of=user_of)],
            capabilities=[ProcessHistory(recall_history(memory, namespace_of=user_of))],
        )
        for user, said in (
            ("mara", "The staging database of Ferrywell listens on port 5433."),
            ("mara", "which port does the staging database of Ferrywell listen on?"),
            ("rafi", "which port does the staging database of Ferrywell listen on?"),
        ):
            result = await agent.run(said, deps=user)
            print(f"{user}: {result.output}")
            await keep_run(memory.scoped(user), "monday", result.new_messages(), speaker=user)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
