"""The SDK's own client over its control protocol, a stand-in for Claude Code behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher
from examples.claude_agent_memory import StandIn
from tests.adapters.blocks import quotes_recalled
from tests.adapters.pages import run_page
from tests.hooks.hook_desk import write_transcript

from anaphora import Memory
from anaphora.adapters.claude_agent_sdk import memory_hooks

pytestmark = pytest.mark.enable_socket

FACT = "The staging database of the ferry shop listens on port 5439."
ASKED = "Which port is the staging database of the ferry shop on?"
FIRST = "11111111-aaaa-4bbb-8ccc-000000000001"
SECOND = "22222222-aaaa-4bbb-8ccc-000000000002"


def talk(memory: Memory, folder: Path, session: str, *events: dict[str, Any]) -> list[str]:
    """What the hooks of a session answer to these events, each through the SDK's client."""
    cli = StandIn(session, folder)

    async def scenario() -> list[str]:
        options = ClaudeAgentOptions(hooks=memory_hooks(memory))
        async with ClaudeSDKClient(options=options, transport=cli):
            return [await cli.tell(**event) for event in events]

    return asyncio.run(scenario())


def prompt(text: str) -> dict[str, Any]:
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


STOP = {"hook_event_name": "Stop", "stop_hook_active": False}
COMPACT = {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": None}


@pytest.mark.promise("adapters.claude_agent_sdk")
def test_what_one_session_says_reaches_the_next(tmp_path: Path) -> None:
    """A turn comes in as it ends; the next session gets what bears on it, and nothing twice."""
    with Memory.open(tmp_path / "home") as memory:
        memory.ready()
        transcript = tmp_path / f"{FIRST}.jsonl"
        write_transcript("claude-code", transcript, FIRST, tmp_path, [FACT])
        assert talk(memory, tmp_path, FIRST, prompt(ASKED), STOP) == ["", ""]
        assert memory.recall_conversation(None, ASKED).hits[0].text == FACT
        # A second turn right behind the first comes in as well.
        write_transcript("claude-code", transcript, FIRST, tmp_path, [FACT, "Rafi owns it."])
        talk(memory, tmp_path, FIRST, STOP)
        begun, again, other = talk(
            memory, tmp_path, SECOND, prompt(ASKED), prompt(ASKED), prompt("go on")
        )
        assert "Last sessions:" in begun
        assert "port 5439" in begun
        assert quotes_recalled(begun)
        assert again == ""
        assert other == ""


@pytest.mark.promise("adapters.claude_agent_sdk")
def test_what_a_compaction_takes_comes_back_with_the_next_prompt(tmp_path: Path) -> None:
    """The SDK tells of no start after a compaction: the prompt after it brings the words back."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        write_transcript("claude-code", tmp_path / f"{FIRST}.jsonl", FIRST, tmp_path, [FACT])
        said = talk(memory, tmp_path, FIRST, prompt("hello there"), COMPACT, prompt("and now?"))
        assert said[1] == ""
        assert "port 5439" in said[2]


@pytest.mark.promise("adapters.claude_agent_sdk")
def test_a_transcript_with_recalled_blocks_is_no_news(tmp_path: Path) -> None:
    """What was put in is not found again as if it had been said."""
    with Memory.open(tmp_path / "home") as memory:
        memory.ready()
        memory.remember(FACT)
        (given,) = talk(memory, tmp_path, FIRST, prompt(ASKED))
        assert "port 5439" in given
        write_transcript("claude-code", tmp_path / f"{FIRST}.jsonl", FIRST, tmp_path, [given])
        talk(memory, tmp_path, FIRST, STOP)
        turns = memory.recall_conversation(None, ASKED, min_confidence=0).hits
        assert not [hit for hit in turns if "5439" in hit.text]


@pytest.mark.promise("adapters.claude_agent_sdk")
def test_memory_never_stops_the_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A memory that fails is logged, and the prompt goes on without it; other hooks are called."""
    memory = Memory.open(tmp_path / "home", embedder="hashing")
    memory.close()
    assert talk(memory, tmp_path, FIRST, prompt(ASKED), STOP) == ["", ""]
    assert "without memory" in caplog.text
    hooks = memory_hooks(memory)
    assert set(hooks) == {"UserPromptSubmit", "PreCompact", "Stop"}
    assert all(isinstance(one, HookMatcher) for matchers in hooks.values() for one in matchers)


@pytest.mark.promise("adapters.claude_agent_sdk")
def test_namespaces_stay_apart_and_the_loop_goes_on(tmp_path: Path) -> None:
    """A hook works beside the event loop; another user's memory is not told."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.scoped("mara").remember(FACT)
        cli = StandIn(FIRST, tmp_path)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await anyio.sleep(0)

        async def scenario() -> str:
            options = ClaudeAgentOptions(hooks=memory_hooks(memory.scoped("rafi")))
            async with ClaudeSDKClient(options=options, transport=cli):
                ticking = asyncio.ensure_future(tick())
                said = await cli.tell(**prompt(ASKED))
                ticking.cancel()
                return said

        assert asyncio.run(scenario()) == ""
        assert ticks > 2


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows."""
    assert run_page("claude-agent-sdk.md", tmp_path) == []
