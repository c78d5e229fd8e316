"""The memory tool in the tool runner of Anthropic's SDK, beside the SDK's own one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from tests.adapters.pages import run_page

from anaphora import Memory
from anaphora.adapters.anthropic_memory import AnaphoraMemoryTool, AsyncAnaphoraMemoryTool


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


def call(tool: BetaAbstractMemoryTool, **command: Any) -> str:
    try:
        return f"ok: {tool.call(command)}"
    except ToolError as error:
        return f"error: {error}"


SESSION: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/a.txt", "file_text": "Line 1\nOld Text\nLine 3"},
    {"command": "create", "path": "/memories/a.txt", "file_text": "again"},
    {"command": "create", "path": "/memories/deep/nested/b.txt", "file_text": "Nested"},
    {"command": "view", "path": "/memories/a.txt"},
    {"command": "view", "path": "/memories/a.txt", "view_range": [2, 3]},
    {"command": "view", "path": "/memories/no.txt"},
    {"command": "str_replace", "path": "/memories/a.txt", "old_str": "Old", "new_str": "New"},
    {"command": "str_replace", "path": "/memories/a.txt", "old_str": "Line", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/a.txt", "old_str": "none", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/no.txt", "old_str": "a", "new_str": "x"},
    {"command": "insert", "path": "/memories/a.txt", "insert_line": 3, "insert_text": "Last\n"},
    {"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "First"},
    {"command": "view", "path": "/memories/a.txt"},
    {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/c/d.txt"},
    {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/e.txt"},
    {"command": "rename", "old_path": "/memories/deep", "new_path": "/memories/c"},
    {"command": "delete", "path": "/memories/deep"},
    {"command": "delete", "path": "/memories/deep"},
    {"command": "delete", "path": "/memories"},
    {"command": "view", "path": "/memories/c/d.txt"},
]


@pytest.mark.promise("adapters.memory_tool_sdk")
def test_it_answers_as_the_sdks_own_tool_does(memory: Memory, tmp_path: Path) -> None:
    """The same texts for the same commands, and errors where it has errors.

    The documentation puts "Error: " before some of them, and names lines in one more word.
    """
    ours, theirs = AnaphoraMemoryTool(memory), BetaLocalFilesystemMemoryTool(str(tmp_path / "own"))
    for command in SESSION:
        mine, other = (call(tool, **command) for tool in (ours, theirs))
        assert mine.replace("error: Error: ", "error: ") == other, command
    assert ours.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert ours.clear_all_memory() == "All memory cleared"
    assert call(ours, command="view", path="/memories").endswith("0B\t/memories")


@pytest.mark.promise("adapters.memory_tool_sdk")
def test_what_a_model_left_out_is_an_error_for_it(memory: Memory) -> None:
    """The SDK checks no command: the tool does, and the loop goes on."""
    assert "needs `file_text`" in call(
        AnaphoraMemoryTool(memory), command="create", path="/memories/a"
    )


class Scripted:
    """A model that gives tool calls in their order, then text, and notes the results."""

    def __init__(self, *inputs: dict[str, Any]) -> None:
        self.inputs = list(inputs)
        self.results: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        told = json.loads(request.content)
        # In a server-side thread only what is new is sent.
        self.tools = told.get("tools", self.tools)
        last = told["messages"][-1]["content"]
        if isinstance(last, list):
            self.results += [block for block in last if block["type"] == "tool_result"]
        at = len(self.results)
        if at < len(self.inputs):
            content: dict[str, Any] = {
                "type": "tool_use", "id": f"t{at}", "name": "memory", "input": self.inputs[at],
            }  # fmt: skip
            reason = "tool_use"
        else:
            content, reason = {"type": "text", "text": "done"}, "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx.Response(
            200,
            json={
                "id": "m", "type": "message", "role": "assistant", "model": "fake",
                "content": [content], "stop_reason": reason, "stop_sequence": None, "usage": usage,
            },
        )  # fmt: skip


INPUTS: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/ports.md", "file_text": "staging: 5433"},
    {"command": "view", "path": "/memories/../etc/passwd"},
]


@pytest.mark.enable_socket
@pytest.mark.promise("adapters.memory_tool_sdk")
@pytest.mark.parametrize("awaited", [False, True])
def test_the_tool_runner_runs_it(memory: Memory, awaited: bool) -> None:
    """A whole loop of the SDK, its model scripted: results go back, an error is marked as one."""
    model = Scripted(*INPUTS)
    transport = httpx.MockTransport(model)
    asked: dict[str, Any] = {
        "model": "fake",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Remember the port."}],
    }
    if awaited:

        async def run() -> Any:
            async with httpx.AsyncClient(transport=transport) as http:
                client = AsyncAnthropic(api_key="none", http_client=http)
                tools = [AsyncAnaphoraMemoryTool(memory)]
                runner = client.beta.messages.tool_runner(tools=tools, **asked)
                return await runner.until_done()

        last = asyncio.run(run())
    else:
        with httpx.Client(transport=transport) as plain:
            client = Anthropic(api_key="none", http_client=plain)
            runner = client.beta.messages.tool_runner(tools=[AnaphoraMemoryTool(memory)], **asked)
            last = runner.until_done()
    assert last.content[0].text == "done"
    assert model.tools == [{"type": "memory_20250818", "name": "memory"}]
    assert [result.get("is_error", False) for result in model.results] == [False, False, True]
    assert memory.recall("which port has staging?").hits[0].text == "staging: 5433"


@pytest.mark.enable_socket
@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """Every program of the how-to page prints what the page shows."""
    assert run_page("anthropic-memory-tool.md", tmp_path) == []
