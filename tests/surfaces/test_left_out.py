"""What clients send for an argument that they leave out, and what a model is told to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.mcp_client import call, connected, refusal, text_of
from tests.tool_reference import documented_tools

NOTHING: list[Any] = ["", "  ", "null", "None", "undefined", [], [None], ["null"], [""], None]
GIVEN: dict[str, dict[str, Any]] = {
    "recall": {"question": "which port does staging use?"},
    "recall_memory": {"question": "which port does staging use?"},
    "store_memory": {"content": "Staging listens on port 5433."},
    "recall_conversation": {"question": "which port?"},
    "recall_context": {"focus": "the port of staging"},
    "warm_up": {},
    "deep_recall": {"question": "which port does staging use?"},
    "save_diary": {"summary": "Looked at the ports."},
    "save_turns": {"conversationId": "monday", "turns": [{"role": "user", "text": "Hi."}]},
    "contradictions": {},
    "gaps": {},
    "search": {"query": "port"},
}
"""Calls with what each tool requires; those that work without a project."""
NEED_A_PROJECT = {"recall_context", "save_diary"}


@pytest.mark.promise("mcp.bad_input")
@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_nothing_stands_for_what_is_left_out(tmp_path: Path, nothing: Any) -> None:
    """Every optional argument of every tool may be so; the answer is that without it."""

    async def scenario() -> None:
        async with connected(tmp_path / "home", "--tools", "all") as session:
            for tool in GIVEN.keys() - NEED_A_PROJECT:
                given, stated = GIVEN[tool], documented_tools()[tool]
                optional = dict.fromkeys(set(stated.arguments) - set(stated.required), nothing)
                await call(session, tool, **{**optional, **given})
            found = await call(session, "recall", question="which port does staging use?")
            assert [hit["snippet"] for hit in found["data"]] == ["Staging listens on port 5433."]

    anyio.run(scenario)


@pytest.mark.promise("mcp.bad_input")
@pytest.mark.parametrize("nothing", ["", "null", "None", "undefined"])
def test_memories_at_no_path_hide_none(tmp_path: Path, nothing: str) -> None:
    """Two memories whose path a client leaves out so are two."""

    async def scenario() -> None:
        async with connected(tmp_path / "home") as session:
            for content in ("The boiler was serviced in May.", "Nora's teacher is Ms Hall."):
                kept = await call(session, "store_memory", content=content, path=nothing)
                assert kept["data"]["action"] == "added"
            found = await call(session, "recall_memory", question="boiler")
            assert "path" not in found["data"][0]

    anyio.run(scenario)


@pytest.mark.promise("mcp.bad_input")
def test_what_is_required_is_taken_as_it_is(tmp_path: Path) -> None:
    """ "null" may be the question or the words; a blank one is refused by its own name."""

    async def scenario() -> None:
        async with connected(tmp_path / "home", "--tools", "all") as session:
            await call(session, "store_memory", content="null")
            found = await call(session, "recall_memory", question="null")
            assert [hit["text"] for hit in found["data"]] == ["null"]
            assert "question" in await refusal(session, "recall", question="")
            assert "id" in await refusal(session, "forget", id="null", filters=None)
            for wrong in ("no-such-memory", "x"):
                said = await refusal(session, "store_memory", content="Words.", supersedes=wrong)
                assert "memory" in said or "supersedes" in said
            said = await refusal(session, "store_memory", content="Words.", path="user.editor.")
            assert said.startswith("path: must not end with a dot")

    anyio.run(scenario)


@pytest.mark.promise("contradictions.told")
def test_a_model_is_told_that_both_may_hold(tmp_path: Path) -> None:
    """Beside what replaces: that both stay where both hold, and the verdict that says so."""

    async def scenario() -> None:
        async with connected(tmp_path / "home", "--tools", "all", embedder="minilm") as session:
            await call(session, "recall_memory", question="the model is loaded by a question")
            await call(session, "store_memory", content="The team deploys on Wednesdays.")
            given = {"content": "Since July the team deploys on Thursdays."}
            said = text_of(await session.call_tool("store_memory", given))
            assert "says otherwise" in said
            assert 'settle_contradiction with the verdict "both_hold"' in said
            asked = {"question": "when does the team deploy?"}
            told = text_of(await session.call_tool("recall", asked))
            # Each beside its own words once, as what is not settled.
            assert told.count("not settled") == told.count("Wednesdays") == 2
            hits = (await call(session, "recall", **asked))["data"]
            assert [hit.get("current", True) for hit in hits] == [True, False]

    anyio.run(scenario)


@pytest.mark.promise("remember.supersedes")
def test_a_model_is_told_of_another_case(tmp_path: Path) -> None:
    """In the text and in the data: under which path it was kept."""

    async def scenario() -> None:
        async with connected(tmp_path / "home") as session:
            await call(session, "store_memory", content="It is vim.", path="user.editor")
            given = {"content": "It is helix.", "path": "User.Editor"}
            said = text_of(await session.call_tool("store_memory", given))
            assert said.count("kept under the path 'user.editor'") == 1
            assert "Note for the user: kept under the path 'user.editor'" in said
            kept = await call(session, "store_memory", content="It is zed.", path="USER.EDITOR")
            assert "'user.editor'" in kept["data"]["notices"][0]

    anyio.run(scenario)
