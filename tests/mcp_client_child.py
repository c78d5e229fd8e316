"""A client that a test may kill: `mcp_client_child.py HOME` keeps memories without an end.

Every acknowledged one is a line on standard output. Standard error is the server's too, so that it
closes when both have gone.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(home: Path) -> None:
    start = StdioServerParameters(
        command=str(Path(sys.executable).with_name("anaphora")),
        args=["--home", str(home), "mcp"],
        env={"ANAPHORA_EMBEDDER": "hashing", "ANAPHORA_READER": "off", "HOME": str(home.parent)},
        cwd=home.parent,
    )
    async with (
        stdio_client(start, errlog=sys.stderr) as streams,
        ClientSession(*streams) as session,
        anyio.create_task_group() as group,
    ):
        await session.initialize()

        async def keep(name: str) -> None:
            number = 0
            while True:
                number += 1
                text = f"note {number} of the {name} task"
                result = await session.call_tool("store_memory", {"content": text})
                assert not result.is_error
                print(text, flush=True)

        for name in ("first", "second", "third"):
            group.start_soon(keep, name)


anyio.run(main, Path(sys.argv[1]))
