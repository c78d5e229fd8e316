"""The framework's own agent and sessions over the context provider, with a stand-in client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from agent_framework import Agent, AgentSession, Message
from examples.agent_framework_memory import StandIn
from tests.adapters.blocks import BEGIN, END, quotes_recalled
from tests.adapters.pages import run_page
from tests.tokens import token_cost

from anaphora import AsyncMemory
from anaphora.adapters.agent_framework import AnaphoraContextProvider

pytestmark = pytest.mark.enable_socket

PORT = "The staging database of Ferrywell listens on port 5433."
QUESTION = "which port does the staging database of Ferrywell listen on?"


def run(scenario: Callable[[AsyncMemory], Awaitable[None]], home: Path) -> None:
    async def opened() -> None:
        async with AsyncMemory.open(home) as memory:
            await memory.ready()
            await scenario(memory)

    asyncio.run(opened())


def blocks(messages: list[Message]) -> list[str]:
    return [one.text for one in messages if quotes_recalled(one.text)]


@pytest.mark.promise("adapters.agent_framework")
def test_what_one_session_says_another_gets(tmp_path: Path) -> None:
    """Turns are kept verbatim; a question of another session gets them in one message."""

    async def scenario(memory: AsyncMemory) -> None:
        client = StandIn()
        agent = Agent(client, context_providers=[AnaphoraContextProvider(memory)])
        await agent.run(PORT, session=agent.create_session(session_id="monday"))
        assert blocks(client.seen[0]) == []
        await agent.run(QUESTION, session=agent.create_session(session_id="tuesday"))
        (block,) = blocks(client.seen[1])
        assert PORT in block
        assert [one.text for one in client.seen[1]] == [block, QUESTION]
        thread = await memory.conversations.get("agent_framework_monday")
        assert thread is not None
        assert [(t.role, t.text) for t in thread.turns] == [
            ("user", PORT),
            ("assistant", "I know nothing of that."),
        ]

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.agent_framework")
def test_a_history_is_not_recalled_and_no_block_is_kept(tmp_path: Path) -> None:
    """What the session has before it stays out of the block, and the block out of what is kept."""

    async def scenario(memory: AsyncMemory) -> None:
        client = StandIn()
        agent = Agent(client, context_providers=[AnaphoraContextProvider(memory)])
        session = agent.create_session(session_id="a/b c")
        given = [
            Message(role="system", contents=["Be brief."]),
            Message(
                role="user", contents=[f"{BEGIN}\n- {PORT}\n{END}\nRafi feeds the harbour cat."]
            ),
        ]
        await agent.run(given, session=session)
        (conversation,) = [one.conversation_id for one in await memory.conversations.list()]
        thread = await memory.conversations.get(conversation)
        assert thread is not None
        assert thread.turns[0].text == "Rafi feeds the harbour cat."
        live = Message(role="user", contents=["Rafi feeds the harbour cat."])
        asked = Message(role="user", contents=["who feeds the harbour cat?"])
        await agent.run([live, asked], session=agent.create_session())
        assert not [block for block in blocks(client.seen[-1]) if "user: Rafi" in block]

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.agent_framework")
def test_the_budget_is_kept_and_nothing_is_put_in_for_nothing(tmp_path: Path) -> None:
    """A block costs at most its tokens; without a question there is none."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember_many([f"{PORT} Since day {n}, {'long ' * n}" for n in range(20)])
        for budget in (0, 100, 200):
            client = StandIn()
            provider = AnaphoraContextProvider(memory, budget=budget, top_k=20, keep=False)
            agent = Agent(client, context_providers=[provider])
            await agent.run(QUESTION)
            assert all(token_cost(block) <= budget for block in blocks(client.seen[0]))
            assert bool(blocks(client.seen[0])) is (budget > 0)
        await agent.run(" ")
        assert blocks(client.seen[-1]) == []
        assert (await memory.stats()).turns == 0

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.agent_framework")
def test_users_stay_apart(tmp_path: Path) -> None:
    """`namespace_of` reads the session: one user's memory is not put before another."""

    async def scenario(memory: AsyncMemory) -> None:
        def user_of(session: AgentSession) -> str:
            return str(session.session_id).partition(":")[0]

        client = StandIn()
        provider = AnaphoraContextProvider(memory, namespace_of=user_of)
        agent = Agent(client, context_providers=[provider])
        for name, said in (("mara:1", PORT), ("mara:2", QUESTION), ("rafi:1", QUESTION)):
            await agent.run(said, session=agent.create_session(session_id=name))
        assert [bool(blocks(seen)) for seen in client.seen] == [False, True, False]

    run(scenario, tmp_path)


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows."""
    assert run_page("agent-framework.md", tmp_path) == []
