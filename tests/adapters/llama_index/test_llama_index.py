"""LlamaIndex's own memory, agent and mock model, with a block over a real memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory
from tests.adapters.blocks import BEGIN, END, quotes_recalled
from tests.adapters.pages import run_page
from tests.tokens import token_cost

from anaphora import AsyncMemory
from anaphora.adapters.llama_index import AnaphoraMemoryBlock

pytestmark = pytest.mark.enable_socket

PORT = "The staging database of Ferrywell listens on port 5433."
QUESTION = "which port does the staging database of Ferrywell listen on?"


def run(scenario: Callable[[AsyncMemory], Awaitable[None]], home: Path) -> None:
    async def opened() -> None:
        async with AsyncMemory.open(home / "home") as memory:
            await memory.ready()
            await scenario(memory)

    asyncio.run(opened())


def said(role: str, text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=text)


def window(block: BaseMemoryBlock[str], home: Path, **more: object) -> Memory:
    """LlamaIndex's memory with a small window, its messages in a file."""
    return Memory.from_defaults(
        session_id="monday",
        token_limit=120,
        chat_history_token_ratio=0.5,
        token_flush_size=20,
        memory_blocks=[block],
        tokenizer_fn=str.split,
        async_database_uri=f"sqlite+aiosqlite:///{home / 'window.db'}",
        **more,
    )


@pytest.mark.promise("adapters.llama_index")
def test_what_leaves_the_window_comes_back_when_it_matters(tmp_path: Path) -> None:
    """Flushed messages are turns of their session, verbatim; a question gets what bears on it."""

    async def scenario(memory: AsyncMemory) -> None:
        chat = window(AnaphoraMemoryBlock(memory=memory), tmp_path)
        await chat.aput(said("user", PORT))
        await chat.aput(said("assistant", "Noted."))
        for n in range(12):
            await chat.aput(said("user", f"Parcel {n} went to Hamburg by the blue van."))
            await chat.aput(said("assistant", f"Parcel {n} it is."))
        thread = await memory.conversations.get("llama_index_monday")
        assert thread is not None
        assert [(t.role, t.text) for t in thread.turns[:2]] == [
            ("user", PORT),
            ("assistant", "Noted."),
        ]
        await chat.aput(said("user", QUESTION))
        messages = await chat.aget()
        assert PORT not in str(messages[1:])
        assert messages[0].role == MessageRole.SYSTEM
        assert PORT in str(messages[0].content)
        assert quotes_recalled(str(messages[0].content))

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.llama_index")
def test_the_content_keeps_its_budget_and_leaves_out_what_is_live(tmp_path: Path) -> None:
    """Never more tokens than asked for; what the window still has is not recalled."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember_many([f"{PORT} Since day {n}, {'long ' * n}." for n in range(30)])
        for budget in (0, 60, 150, 600):
            block = AnaphoraMemoryBlock(memory=memory, budget=budget, top_k=20)
            content = await block.aget([said("user", QUESTION)])
            assert token_cost(content) <= budget
        assert content.count("\n- ") > 1
        block = AnaphoraMemoryBlock(memory=memory)
        await memory.conversations.append_user("other", "Rafi feeds the harbour cat at dawn.")
        live = [
            said("user", "Rafi feeds the harbour cat at dawn."),
            said("user", "who feeds the cat?"),
        ]
        assert "Rafi" not in await block.aget(live)
        assert "Rafi" in await block.aget(live[1:])
        assert await block.aget([]) == ""
        assert await block.aget([said("assistant", PORT)]) == ""

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.llama_index")
def test_it_never_feeds_on_itself(tmp_path: Path) -> None:
    """A block that was put into a message of the user is not kept with it."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember(PORT)
        block = AnaphoraMemoryBlock(memory=memory, session_id="own")
        given = f"{BEGIN}\n{PORT}\n{END}\n{QUESTION}"
        picture = ChatMessage(
            role="user", blocks=[TextBlock(text="see the map"), ImageBlock(url="http://x/y.png")]
        )
        await block.aput([said("user", given), said("tool", "5433"), picture, said("user", " ")])
        thread = await memory.conversations.get("llama_index_own")
        assert thread is not None
        assert [turn.text for turn in thread.turns] == [QUESTION, "see the map"]

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.llama_index")
def test_users_and_sessions_stay_apart(tmp_path: Path) -> None:
    """A namespace for each user; a session id of any form names its own conversation."""

    async def scenario(memory: AsyncMemory) -> None:
        mara = AnaphoraMemoryBlock(memory=memory.scoped("mara"))
        rafi = AnaphoraMemoryBlock(memory=memory.scoped("rafi"))
        await mara.aput([said("user", PORT)], from_short_term_memory=True, session_id="a/b c")
        assert PORT in await mara.aget([said("user", QUESTION)])
        assert await rafi.aget([said("user", QUESTION)]) == ""
        assert (await memory.scoped("rafi").stats()).turns == 0

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.llama_index")
@pytest.mark.parametrize("method", list(InsertMethod))
def test_a_chat_engine_shows_it_to_the_model(tmp_path: Path, method: InsertMethod) -> None:
    """The mock model says its prompt back: the block is in it, before the question."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember(PORT)
        chat = window(AnaphoraMemoryBlock(memory=memory), tmp_path, insert_method=method)
        engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=chat)
        answer = str(await engine.achat(QUESTION))
        assert PORT in answer
        assert answer.index(END) < answer.rindex(QUESTION)

    run(scenario, tmp_path)


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows."""
    assert run_page("llama-index.md", tmp_path) == []
