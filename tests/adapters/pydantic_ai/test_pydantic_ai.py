"""Pydantic AI's own agent, with its test models, over a real memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from tests.adapters.blocks import BEGIN, END
from tests.adapters.pages import run_page
from tests.tokens import token_cost

from anaphora import AsyncMemory
from anaphora.adapters.pydantic_ai import keep_run, memory_toolset, recall_history

pytestmark = pytest.mark.enable_socket

PORT = "The staging database of Ferrywell listens on port 5433."
QUESTION = "which port does the staging database of Ferrywell listen on?"


def run(scenario: Callable[[AsyncMemory], Awaitable[None]], home: Path) -> None:
    async def opened() -> None:
        async with AsyncMemory.open(home) as memory:
            await memory.ready()
            await scenario(memory)

    asyncio.run(opened())


class Seeing:
    """A model that answers with tool calls, then text, and notes what it was given."""

    def __init__(self, *calls: ToolCallPart) -> None:
        self.calls = list(calls)
        self.seen: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        part = self.calls.pop(0) if self.calls else TextPart("All right.")
        return ModelResponse(parts=[part])


def contents(message: ModelMessage) -> list[Any]:
    return [part.content for part in message.parts if isinstance(part, UserPromptPart)]


def blocks(messages: list[ModelMessage]) -> list[str]:
    return [
        str(part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart) and str(part.content).startswith(BEGIN)
    ]


@pytest.mark.promise("adapters.pydantic_ai")
def test_the_tools_recall_remember_and_forget(tmp_path: Path) -> None:
    """What a tool keeps another recalls; a memory that is forgotten is not recalled."""

    async def scenario(memory: AsyncMemory) -> None:
        keep = ToolCallPart("remember", {"fact": PORT, "path": "staging.port"})
        model = Seeing(keep, ToolCallPart("recall", {"question": QUESTION}))
        agent = Agent(model.model, toolsets=[memory_toolset(memory)])
        result = await agent.run("Note the port, then look it up.")
        assert result.output == "All right."
        told = [
            str(part.content)
            for message in result.all_messages()
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        assert told[0].startswith("added: id ")
        assert PORT in told[1]
        assert told[1].startswith(BEGIN)
        known = told[0].split()[-1]
        model.calls = [ToolCallPart("forget", {"id": known}), ToolCallPart("forget", {"id": "x"})]
        result = await agent.run("Forget it.")
        assert "forgotten: 1" in str(result.all_messages())
        assert not (await memory.recall(QUESTION)).hits
        assert await memory.undo_forget(known)

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.pydantic_ai")
def test_every_tool_can_be_called_by_the_test_model(tmp_path: Path) -> None:
    """`TestModel` calls each tool with arguments of its schema; the schema describes them."""

    async def scenario(memory: AsyncMemory) -> None:
        model = TestModel()
        result = await Agent(model, toolsets=[memory_toolset(memory)]).run("go")
        assert '"recall"' in result.output
        parameters = model.last_model_request_parameters
        assert parameters is not None
        assert {tool.name for tool in parameters.function_tools} == {"recall", "remember", "forget"}
        for tool in parameters.function_tools:
            assert tool.description
            described = tool.parameters_json_schema["properties"].values()
            assert all(one.get("description") for one in described)

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.pydantic_ai")
def test_users_stay_apart(tmp_path: Path) -> None:
    """`namespace_of` reads a run's dependencies: one user's memory is not another's."""

    async def scenario(memory: AsyncMemory) -> None:
        def user_of(context: RunContext[str]) -> str:
            return context.deps

        tools = memory_toolset(memory, namespace_of=user_of)
        model = Seeing(ToolCallPart("remember", {"fact": PORT}))
        await Agent(model.model, deps_type=str, toolsets=[tools]).run("keep", deps="mara")
        for user, expected in (("mara", True), ("rafi", False)):
            model = Seeing(ToolCallPart("recall", {"question": QUESTION}))
            processor = recall_history(memory, namespace_of=user_of)
            agent = Agent(
                model.model,
                deps_type=str,
                toolsets=[tools],
                capabilities=[ProcessHistory(processor)],
            )
            result = await agent.run(QUESTION, deps=user)
            assert (PORT in str(result.all_messages())) is expected
            assert bool(blocks(model.seen[0])) is expected

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.pydantic_ai_history")
def test_what_stands_out_is_put_before_the_prompt(tmp_path: Path) -> None:
    """One block, within its budget, for as long as the prompt is the last one; else nothing."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember(PORT)
        await memory.remember_many([f"Parcel {n} went to Hamburg by van." for n in range(20)])
        model = Seeing(ToolCallPart("recall", {"question": QUESTION}))
        agent = Agent(
            model.model,
            toolsets=[memory_toolset(memory)],
            capabilities=[ProcessHistory(recall_history(memory, budget=120))],
        )
        first = await agent.run(QUESTION)
        assert len(model.seen) == 2  # Before and after the tool.
        for seen in model.seen:
            (block,) = blocks(seen)
            assert PORT in block
            assert token_cost(block) <= 120
            request = seen[0]
            assert isinstance(request, ModelRequest)
            assert [type(part) for part in request.parts] == [UserPromptPart, UserPromptPart]
            assert contents(request)[-1] == QUESTION
        second = await agent.run("thanks, go on", message_history=first.all_messages())
        assert blocks(model.seen[-1]) == []
        assert blocks(second.all_messages()) == []

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.pydantic_ai_history")
def test_it_never_feeds_on_itself(tmp_path: Path) -> None:
    """What was recalled is not kept; what is live is not recalled; a quoted block asks nothing."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember(PORT)
        processor = recall_history(memory)
        model = Seeing()
        agent = Agent(model.model, capabilities=[ProcessHistory(processor)])
        result = await agent.run(QUESTION)
        assert blocks(result.all_messages())
        assert await keep_run(memory, "monday", result.new_messages(), speaker="Mara") == 2
        thread = await memory.conversations.get("monday")
        assert thread is not None
        assert [(t.role, t.text) for t in thread.turns] == [
            ("user", QUESTION),
            ("assistant", "All right."),
        ]
        # The same question again: what was said of it before is found, not what is said now.
        again = await agent.run(QUESTION, message_history=result.all_messages())
        for block in blocks(again.all_messages()):
            assert QUESTION not in block
        model.seen.clear()
        await agent.run(f"{BEGIN}\n{PORT} {QUESTION}\n{END}")
        assert contents(model.seen[0][0]) == [f"{BEGIN}\n{PORT} {QUESTION}\n{END}"]

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.pydantic_ai_history")
def test_prompts_of_several_parts_and_empty_ones(tmp_path: Path) -> None:
    """A prompt may be a list, or be missing; the history stays what it was."""

    async def scenario(memory: AsyncMemory) -> None:
        await memory.remember(PORT)
        model = Seeing()
        agent: Agent[None, str] = Agent(
            model.model, capabilities=[ProcessHistory(recall_history(memory))]
        )
        result = await agent.run(["A question:", QUESTION])
        assert len(blocks(model.seen[0])) == 1
        assert list(contents(model.seen[0][0])[-1]) == ["A question:", QUESTION]
        assert await keep_run(memory, "list", result.new_messages()) == 2
        await agent.run(" ")
        assert blocks(model.seen[-1]) == []

    run(scenario, tmp_path)


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows."""
    assert run_page("pydantic-ai.md", tmp_path) == []
