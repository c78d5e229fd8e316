"""An agent of Google's ADK that preloads what was said in the user's earlier sessions.

Runs without a key and without a network: the model is a stand-in that says what it was given. Put a
real one in its place.

    python examples/google_adk_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

from anaphora import AsyncMemory
from anaphora.adapters.google_adk import AnaphoraMemoryService


class StandIn(BaseLlm):
    """A model that says back what the user said before."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One answer."""
        given = "\n".join(
            part.text
            for content in llm_request.contents
            for part in content.parts or ()
            if part.text and "<PAST_CONVERSATIONS>" in part.text
        )
        past = [line for line in given.splitlines() if line.startswith("user: ")]
        said = f"You said: {past[0].removeprefix('user: ')}" if past else "I know nothing of that."
        content = types.Content(role="model", parts=[types.Part.from_text(text=said)])
        # ADK warns of an answer that costs nothing.
        cost = types.GenerateContentResponseUsageMetadata(prompt_token_count=1)
        yield LlmResponse(content=content, usage_metadata=cost)


async def main(home: str) -> None:
    """Say something in one session, and ask in another, as the same user and as another one."""
    async with AsyncMemory.open(home) as memory:
        await memory.ready()
        sessions, service = InMemorySessionService(), AnaphoraMemoryService(memory)
        agent = LlmAgent(name="helper", model=StandIn(model="fake"), tools=[PreloadMemoryTool()])
        runner = Runner(
            app_name="parcels", agent=agent, session_service=sessions, memory_service=service
        )
        for user, said in (
            ("mara", "The blue van is Greta's."),
            ("mara", "whose is the blue van?"),
            ("rafi", "whose is the blue van?"),
        ):
            session = await sessions.create_session(app_name="parcels", user_id=user)
            message = types.Content(role="user", parts=[types.Part.from_text(text=said)])
            async for event in runner.run_async(
                user_id=user, session_id=session.id, new_message=message
            ):
                if event.is_final_response() and event.content and event.content.parts:
                    print(f"{user}: {event.content.parts[0].text}")
            kept = await sessions.get_session(
                app_name="parcels", user_id=user, session_id=session.id
            )
            assert kept is not None
            await service.add_session_to_memory(kept)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
