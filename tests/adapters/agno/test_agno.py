"""Agno's own agent over the toolkit and the hooks, with a stand-in for the model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agno.agent import Agent
from examples.agno_memory import StandIn
from tests.adapters.blocks import BEGIN, END, quotes_recalled
from tests.adapters.pages import run_page
from tests.tokens import token_cost

from anaphora import Memory
from anaphora.adapters.agno import AnaphoraTools, akeep_run, keep_run, namespace_of_user

pytestmark = pytest.mark.enable_socket

PORT = "The staging database of Ferrywell listens on port 5433."
QUESTION = "which port does the staging database of Ferrywell listen on?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home") as opened:
        opened.ready()
        yield opened


def results(agent: Agent, said: str, user: str | None = "mara", session: str = "monday") -> str:
    """What the tools of a run said."""
    run = agent.run(said, user_id=user, session_id=session)
    return "\n".join(str(one.result) for one in run.tools or [])


@pytest.mark.promise("adapters.agno")
def test_the_tools_remember_and_recall_each_user_apart(memory: Memory) -> None:
    """What one run keeps another of the same user finds, between the recalled lines; no other's."""
    agent = Agent(model=StandIn(id="fake"), tools=[AnaphoraTools(memory)])
    assert results(agent, PORT).startswith("added: id ")
    found = results(agent, QUESTION, session="tuesday")
    assert PORT in found
    assert quotes_recalled(found)
    assert results(agent, QUESTION, user="rafi") == "No results."
    assert results(agent, QUESTION, user=None) == "No results."
    names = [namespace_of_user(one) for one in (None, "a/b", "a_b", "mara")]
    assert len(set(names)) == 4


@pytest.mark.promise("adapters.agno")
def test_a_model_sees_what_the_tools_are_for(memory: Memory) -> None:
    """Each tool has a description and described parameters; the run's context is none of them."""
    toolkit = AnaphoraTools(memory)
    assert set(toolkit.functions) == {"recall", "remember", "forget"}
    assert set(toolkit.async_functions) == {"recall", "remember", "forget"}
    for functions in (toolkit.functions, toolkit.async_functions):
        for one in functions.values():
            one.process_entrypoint()
            assert one.description
            properties = one.parameters["properties"]
            assert "run_context" not in properties
            assert all(each.get("description") for each in properties.values())
    assert toolkit.add_instructions


@pytest.mark.promise("adapters.agno")
def test_a_memory_is_forgotten_and_what_is_wrong_is_said(memory: Memory) -> None:
    """`forget` can be taken back; what cannot be kept or found is told to the model."""
    toolkit = AnaphoraTools(memory, namespace_of=lambda _: "default", budget=100)
    context: Any = type("Context", (), {"user_id": None, "session_id": "s"})()
    said = toolkit.remember(context, PORT)
    known = said.split()[-1]
    assert toolkit.forget(context, known) == "forgotten: 1"
    assert "No results." in toolkit.recall(context, QUESTION)
    assert memory.undo_forget(known) == (known,)
    assert "no memory with id" in toolkit.forget(context, "x")
    assert toolkit.remember(context, " ").startswith("Not kept: ")
    memory.remember_many([f"{PORT} Since day {n}, {'long ' * n}" for n in range(20)])
    block = toolkit.recall(context, QUESTION)
    assert PORT in block
    assert token_cost(block) <= 100


@pytest.mark.promise("adapters.agno")
@pytest.mark.parametrize("awaited", [False, True])
def test_a_run_is_kept_without_what_was_recalled(memory: Memory, awaited: bool) -> None:
    """The hook keeps the input and the answer in the session's conversation, of the user alone."""
    hook = akeep_run(memory) if awaited else keep_run(memory)
    agent = Agent(model=StandIn(id="fake"), tools=[AnaphoraTools(memory)], post_hooks=[hook])
    said = f"{BEGIN}\n- old news\n{END}\n{PORT}"
    if awaited:
        asyncio.run(agent.arun(said, user_id="mara", session_id="s/1"))
    else:
        agent.run(said, user_id="mara", session_id="s/1")
    scope = memory.scoped("agno_mara")
    (summary,) = scope.conversations.list()
    thread = scope.conversations.get(summary.conversation_id)
    assert thread is not None
    assert [turn.role for turn in thread.turns] == ["user", "assistant"]
    assert thread.turns[0].text == PORT
    assert scope.recall(QUESTION).hits
    assert len(memory.conversations.list()) == 0


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows; Agno's telemetry is off."""
    assert os.environ["AGNO_TELEMETRY"] == "false"
    assert run_page("agno.md", tmp_path) == []
