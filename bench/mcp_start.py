"""What a coding agent waits for when it starts the server.

Seconds from the spawn to the answers of `initialize`, `tools/list` and the first `recall_memory`,
each the median of several fresh processes, run in turns with a process that only imports
`mcp.server`, so that both see the same machine. The home is new, the model the real one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from bench.figures import Figure, below, keep
from bench.measuring import plain_environment

ROUNDS = 7
CALLS = 200
SCRIPT = Path(sys.executable).with_name("anaphora")


def run(data: Path | None = None) -> list[Figure]:
    """Every figure, kept in bench/results/."""
    bare, timed, load = [], [], []
    for _ in range(ROUNDS):
        bare.append(_seconds("import mcp.server"))
        timed.append(anyio.run(_client))
        load.append(_seconds(_LOAD))
    cost, answered, listed, recalled, warm = (
        statistics.median(bare),
        *(statistics.median(column) for column in zip(*timed, strict=True)),
    )
    figures = [
        Figure("a process with a bare import of mcp.server", cost, "s"),
        Figure("spawn to initialize answered", answered, "s"),
        below("initialize over the bare import", answered - cost, 0.4, "s"),
        below("tools/list after initialize", listed - answered, 0.1, "s"),
        Figure("first recall_memory after tools/list", recalled - listed, "s"),
        Figure("a process that opens a memory and loads the model", statistics.median(load), "s"),
        Figure("recall_memory, warm, distinct queries", 1000 * warm, "ms"),
    ]
    keep("mcp_start", "Starting the server for coding agents", figures)
    return figures


_LOAD = """
import tempfile
from anaphora import Memory
with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
    memory.recall("what is remembered")
"""


async def _client() -> tuple[float, float, float, float]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    with tempfile.TemporaryDirectory() as home:
        server = StdioServerParameters(command=str(SCRIPT), args=["--home", home, "mcp"], cwd=home)
        began = time.perf_counter()
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            answered = time.perf_counter() - began
            await session.list_tools()
            listed = time.perf_counter() - began
            await _recall(session, "which editor does the user prefer?")
            recalled = time.perf_counter() - began
            spent = []
            for number in range(CALLS):
                start = time.perf_counter()
                await _recall(session, f"what was decided about topic {number}?")
                spent.append(time.perf_counter() - start)
    return answered, listed, recalled, statistics.median(spent)


async def _recall(session: Any, query: str) -> None:
    result = await session.call_tool("recall_memory", {"query": query})
    assert not result.is_error, result.content


def _seconds(code: str) -> float:
    """From the spawn to the end of `code`."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", code + "\nprint(flush=True)"],
        stdout=subprocess.PIPE,
        env=plain_environment(),
    ) as process:
        assert process.stdout is not None
        # Until it is done, not until it has taken itself apart: a server does not end here either.
        assert process.stdout.readline() == b"\n"
        return time.perf_counter() - began


if __name__ == "__main__":
    run()
