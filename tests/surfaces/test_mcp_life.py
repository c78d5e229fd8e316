"""How long a server of coding agents lives, what it holds on to, and who may use it beside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp_types import CallToolResult
from tests.commands import program
from tests.mcp_client import call, connected, refusal, server, text_of
from tests.processes import children

from anaphora import Memory
from anaphora.errors import InvalidInput, MissingExtra
from anaphora.surfaces import mcp_server
from anaphora.surfaces.cli import run_by_table
from anaphora.surfaces.mcp_server import session as sessions
from anaphora.surfaces.mcp_server.sdk import build_server
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import default_tools
from anaphora.testing import ScriptedModel

CHILD = Path(__file__).resolve().parents[1] / "mcp_client_child.py"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def run(scenario: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(scenario)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "user" / "home"


@pytest.mark.promise("mcp.together")
def test_two_clients_on_one_home(home: Path) -> None:
    """What one keeps the other recalls at once; many calls at once are all answered."""

    async def scenario() -> None:
        async with connected(home) as one, connected(home) as other:
            for number in range(3):
                text = f"Project {number} is called kestrel {number}."
                kept = await call(one if number % 2 else other, "store_memory", content=text)
                found = await call(
                    other if number % 2 else one,
                    "recall_memory",
                    question=f"what is project {number} called, kestrel {number}?",
                    topK=1,
                )
                assert found["data"][0]["id"] == kept["data"]["id"]
            ids: list[str] = []

            async def keep(session: Any, number: int) -> None:
                kept = await call(session, "store_memory", content=f"Fact number {number}.")
                ids.append(kept["data"]["id"])

            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(keep, one if number % 2 else other, number)
        with Memory.open(home, embedder="hashing") as memory:
            assert {record.id for record in memory.list(limit=100)} >= set(ids)
            assert len(set(ids)) == 40

    run(scenario)


@pytest.mark.promise("mcp.together")
def test_cancelled_calls_harm_nothing(home: Path) -> None:
    """Calls that the client gives up leave the server well, and nothing half-done."""

    async def scenario() -> None:
        async with connected(home) as session:
            for number in range(10):
                with anyio.move_on_after(0.002 * number):
                    await session.call_tool("store_memory", {"content": f"Given up {number}."})
            await call(session, "store_memory", content="Kept to the end.")
            found = await call(session, "recall_memory", question="what is kept to the end?")
            assert found["data"][0]["text"] == "Kept to the end."
        with Memory.open(home, embedder="hashing") as memory:
            assert all(check.ok for check in memory.doctor() if check.name != "sqlite")

    run(scenario)


@pytest.mark.promise("mcp.ends")
def test_a_killed_client_takes_its_server_along(home: Path) -> None:
    """After kill -9 amid calls the server is gone, and what was acknowledged is there."""
    environ = {
        k: v for k, v in os.environ.items() if not k.startswith(("ANAPHORA_", "NEO_", "SOVSEAL_"))
    }
    with subprocess.Popen(
        [sys.executable, CHILD, home],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
    ) as client:
        assert client.stdout is not None
        assert client.stderr is not None
        told = [client.stdout.readline().strip() for _ in range(25)]
        client.send_signal(signal.SIGKILL)
        told += [
            line.strip() for line in client.stdout.read().splitlines(keepends=True) if "\n" in line
        ]
        # Its end is reached when nobody holds it any more: neither the client nor the server.
        said = client.stderr.read()
    assert "Traceback" not in said
    with Memory.open(home, embedder="hashing") as memory:
        kept = {record.text for record in memory.list(limit=10_000)}
        assert set(told) <= kept
        assert len(told) >= 25
        memory.remember("The home is well.")


@pytest.mark.promise("mcp.ends")
def test_the_end_of_input_ends_the_server(home: Path) -> None:
    """A client that only closes its end is enough, before or after the handshake."""
    start = server(home, begin=program())
    for sent in ("", '{"jsonrpc":"2.0","id":1,"method":"ping"}\n', "no json\n"):
        done = subprocess.run(
            [start.command, *start.args],
            input=sent,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **(start.env or {})},
        )
        assert done.returncode == 0, done.stderr
        assert all(line.startswith("{") for line in done.stdout.splitlines())


def _piped(home: Path, *lines: bytes) -> list[dict[str, Any]]:
    """The answers of a server whose input is closed after these lines."""
    start = server(home, begin=program())
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params["clientInfo"] = {"name": "test", "version": "1"}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    done = subprocess.run(
        [start.command, *start.args],
        input=b"\n".join((json.dumps(begin).encode(), *lines, b"")),
        capture_output=True,
        check=False,
        env={**os.environ, **(start.env or {})},
    )
    assert done.returncode == 0, done.stderr
    assert b"under way" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()][1:]


def _call(number: int, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(request).encode()


@pytest.mark.promise("mcp.ends")
def test_what_was_asked_before_the_input_ended_is_answered(home: Path) -> None:
    """Calls that are piped into a cold server are answered, and what they store is stored."""
    stores = [_call(n, "store_memory", content=f"Lamp {n} is new \ud83d.") for n in range(1, 4)]
    asked = _call(4, "recall_memory", question="which lamp 3 is new \ud83d?")
    answers = {answer["id"]: answer["result"] for answer in _piped(home, *stores, asked)}
    assert answers.keys() == {1, 2, 3, 4}
    assert not any(answer["isError"] for answer in answers.values())
    # What was told first is found, though nobody waited for that to be stored.
    assert "Lamp 3" in json.dumps(answers[4])
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        stored = {record.text for record in memory.list()}
    assert stored == {f"Lamp {number} is new \ud83d." for number in range(1, 4)}


@pytest.mark.promise("mcp.ends")
def test_a_line_that_is_refused_is_answered_with_its_id(home: Path) -> None:
    """Whatever is wrong with a line: a request gets an answer, a notification or an answer none."""
    deep = b'{"jsonrpc":"2.0","params":{"id":5,"a":' + b"[" * 10**5 + b"]" * 10**5 + b'},"id":%d}'
    table: list[tuple[bytes, list[Any]]] = [
        (b'{"id":1,"method":"ping"}', [1]),
        (b'{"jsonrpc":"2.0","id":"2","method":"ping","params":[1]}', ["2"]),
        (b'{"jsonrpc":"2.0","id":3,"method":5}', [3]),
        (deep % 4, [4]),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":5,"method":"ping"}', [5]),
        (b'[{"jsonrpc":"2.0","id":6,"method":"ping"},{"id":7,"method":"ping"}]', [6, 7]),
        (b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"re', [8]),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":{"a":"\t"}}', [9]),
        (b'{"jsonrpc":"2.0","id":"\\ud83d","method":"ping"}', ["\ud83d"]),
        (b'{"jsonrpc":"2.0","id":10,"method":"\\ud83d"}', [10]),
        (b'{"jsonrpc":"2.0","id":11.5,"method":"ping"}', [11.5]),
        (b'{"jsonrpc":"2.0","id":12,"method":"ping","params":{"a":"\xe9"}}', [12]),
        (b'{"jsonrpc":"2.0","method":"notifications/x","params":[]}', []),
        (b'{"jsonrpc":"2.0","id":13,"result":5}', []),
        (b'{"jsonrpc":"2.0","id":"\x07","method":"ping"}', [None]),
        (b'{"jsonrpc":"2.0","id":007,"method":"ping"}', [None]),
        (b"no JSON", [None]),
    ]
    answers = _piped(home, *(line for line, _ in table))
    ids = [answer["id"] for answer in answers]
    expected = [refused_id for _, refused_ids in table for refused_id in refused_ids]
    assert sorted(map(repr, ids)) == sorted(map(repr, expected))


@pytest.mark.promise("mcp.ends")
def test_a_call_without_an_end_does_not_hold_the_server(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits a moment for what runs, then says that the process must not wait for it."""
    monkeypatch.setattr(sessions, "GRACE", 0.05)
    stuck, free = threading.Event(), threading.Event()
    desk = ServerSession(lambda: Memory.open(home, embedder="hashing", warm=False))
    desk.memory().remember("Kept before the end.")

    def endless() -> None:
        stuck.set()
        free.wait()

    desk.submit(endless)
    stuck.wait()
    assert not desk.finish()
    free.set()
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        assert [record.text for record in memory.list()] == ["Kept before the end."]


@pytest.mark.promise("mcp.ends")
def test_a_server_whose_memory_is_closed_ends_in_peace(home: Path) -> None:
    """With nothing running, closing finishes everything."""
    desk = ServerSession(lambda: Memory.open(home, embedder="hashing"))
    desk.begin()
    desk.memory()
    assert desk.finish()


@pytest.mark.slow
@linux
@pytest.mark.promise("mcp.steady")
def test_a_thousand_calls_take_no_memory(home: Path) -> None:
    """After warming up, the server's resident memory stays where it is."""

    async def scenario() -> None:
        before = children()
        async with connected(home, "--tools", "all", own=True) as session:
            (pid,) = children() - before
            for number in range(20):
                await call(session, "store_memory", content=f"Topic {number} is about birds.")

            async def calls(first: int, last: int) -> None:
                for number in range(first, last):
                    await call(session, "recall_memory", question=f"what is topic {number} about?")
                    if number % 4 == 0:
                        await refusal(session, "recall_memory", topK=number)
                        await session.read_resource("anaphora://memories/recent")
                        await session.list_tools()

            # More than the caches of questions hold, so that they are full before.
            await calls(0, 700)
            start = _resident(pid)
            await calls(700, 1_100)
            grown = _resident(pid) - start
            assert grown < 2_000, f"{grown} KB in 700 calls"

    run(scenario)


@pytest.mark.promise("mcp.progress")
def test_the_steps_of_a_deep_question_are_told(home: Path) -> None:
    """A client that gives a progress token hears every step before the answer comes."""
    code = 'submit("Twice.", ["chat#0", "chat#2"])'
    model = ScriptedModel(["```python\nprint(search('port'))\n```", f"```python\n{code}\n```"])
    desk = ServerSession(lambda: Memory.open(home, embedder="hashing", model=model))
    for number in range(4):
        desk.memory().conversations.append_user("chat", f"The port changed again, {number}.")
    heard: list[tuple[float, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async def scenario() -> CallToolResult:
        async with Client(build_server(desk, default_tools(), started=None)) as client:
            return await client.call_tool(
                "deep_recall",
                {"question": "how often did the port change?"},
                progress_callback=told,
            )

    result = run(scenario)
    desk.finish()
    assert not result.is_error, text_of(result)
    steps = result.structured_content["data"]["steps"]
    assert len(steps) >= 2
    assert [number for number, _ in heard] == [step["number"] for step in steps]
    assert result.structured_content["data"]["answer"] == "Twice."
    assert "| Twice." in text_of(result)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK there is no server over HTTP, and the error says what to install."""
    monkeypatch.setattr(mcp_server, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"\(extra mcp\); run: .*\bmcp\]"):
        mcp_server.serve(http="127.0.0.1:0")


def test_serving_by_the_table_is_only_for_plain_words() -> None:
    """Help and mistakes are left to typer; what is valid reaches the server."""
    for words in (["--help"], ["--tools"], ["more"], ["--verbose"], ["--no-token=1"]):
        assert not run_by_table(["mcp", *words], {}), words
    with pytest.raises(InvalidInput, match="tools"):
        run_by_table(["mcp", "--tools=most"], {"home": "x", "namespace": "n"})


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
