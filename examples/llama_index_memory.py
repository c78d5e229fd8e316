"""A chat of LlamaIndex that recalls what was said in other sessions.

Runs without a key and without a network: LlamaIndex's mock model says its prompt back. Put a real
one in its place.

    python examples/llama_index_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import Memory

from anaphora import AsyncMemory
from anaphora.adapters.llama_index import AnaphoraMemoryBlock


async def main(home: str) -> None:
    """Something was said on Monday; ask on Tuesday."""
    async with AsyncMemory.open(home) as memory:
        await memory.ready()
        await memory.conversations.append_user("monday", "The blue van is Greta's.")
        block = AnaphoraMemoryBlock(memory=memory, budget=400)
        chat = Memory.from_defaults(
            session_id="tuesday", token_limit=4_000, memory_blocks=[block], tokenizer_fn=str.split
        )
        engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=chat)
        print(await engine.achat("whose is the blue van?"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
