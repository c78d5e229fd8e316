"""An agent of Agno with tools to remember and recall, each user apart.

Runs without a key and without a network: the model is a stand-in that remembers what it is told and
recalls what it is asked. Put a real one in its place.

    python examples/agno_memory.py
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

# Agno tells its makers of every run unless it is told not to.
os.environ["AGNO_TELEMETRY"] = "false"

from agno.agent import Agent
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse

from anaphora import Memory
from anaphora.adapters.agno import AnaphoraTools, keep_run


class StandIn(Model):
    """A model that calls `recall` for a question and `remember` for anything else, once."""

    def invoke(self, messages: list[Message], *given: Any, **more: Any) -> ModelResponse:
        """One answer: a tool call, or what the tool said."""
        last = messages[-1]
        if last.role == "tool":
            lines = str(last.content).splitlines()
            found = [line for line in lines if line.startswith("- ")]
            return ModelResponse(role="assistant", content=(found or lines)[0])
        said = str(last.content)
        is_question = said.endswith("?")
        name, field = ("recall", "question") if is_question else ("remember", "fact")
        function = {"name": name, "arguments": json.dumps({field: said})}
        call = {"id": f"call-{len(messages)}", "type": "function", "function": function}
        return ModelResponse(role="assistant", tool_calls=[call])

    async def ainvoke(self, messages: list[Message], *given: Any, **more: Any) -> ModelResponse:
        """The same, awaited."""
        return self.invoke(messages)

    def invoke_stream(self, *given: Any, **more: Any) -> Iterator[ModelResponse]:
        """Not needed here."""
        raise NotImplementedError

    def ainvoke_stream(self, *given: Any, **more: Any) -> AsyncIterator[ModelResponse]:
        """Not needed here."""
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **more: Any) -> ModelResponse:
        raise NotImplementedError

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise NotImplementedError


def main(home: str) -> None:
    """Say something in one session, and ask in others."""
    with Memory.open(home) as memory:
        memory.ready()
        agent = Agent(
            model=StandIn(id="fake"), tools=[AnaphoraTools(memory)], post_hooks=[keep_run(memory)]
        )
        for user, session, said in (
            ("mara", "monday", "The blue van is Greta's."),
            ("mara", "tuesday", "whose is the blue van?"),
            ("rafi", "friday", "whose is the blue van?"),
        ):
            answer = agent.run(said, user_id=user, session_id=session)
            print(f"{user}: {str(answer.content).partition(': id ')[0]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
