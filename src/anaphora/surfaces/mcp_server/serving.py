"""Running the server: over standard input and output, or over HTTP on this machine.

In: which memory, which tools, which address. Out: nothing; it returns when the client has gone or
the server was told to stop. Standard output carries the protocol alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import InvalidInput, MissingExtra
from anaphora.surfaces.mcp_server.tools import DEFAULT_TOOLS, TOOLS

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from anaphora.memory import Memory
    from anaphora.surfaces.mcp_server.desk import Desk

__all__ = ["serve"]

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
INTERRUPTED: Final = 130


def serve(
    open_memory: Callable[[], Memory], *, tools: str = "default", http: str | None = None
) -> None:
    """Serve until the client goes. `tools` is "default" or "all"; `http` is HOST:PORT.

    `open_memory` is called in the background once the handshake was answered. Raises `InvalidInput`
    and, without the SDK, `MissingExtra`.
    """
    if tools not in ("default", "all"):
        raise InvalidInput("tools", tools, "expected default or all")
    address = None if http is None else _address(http)
    if find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp")
    from anaphora.surfaces.mcp_server.desk import Desk
    from anaphora.surfaces.mcp_server.server import built

    desk = Desk(open_memory)
    names = tuple(TOOLS) if tools == "all" else DEFAULT_TOOLS
    # Where a server for several clients was started says nothing about any of them.
    started = Path.cwd() if address is None else None
    run = partial(_stdio, built(desk, names, started))
    if address is not None:
        run = partial(_http, built(desk, names, started), *address)
    _until_the_end(run, desk)


def _until_the_end(run: Callable[[], None], desk: Desk) -> None:
    code = 0
    try:
        run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finished = desk.finish()
    if code or not finished:
        # A thread still waits for a disk, a model or a terminal; truth is safe at any instant,
        # and a server without a client must not stay.
        sys.stderr.flush()
        os._exit(code)


def _stdio(server: Server[Any]) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    async def main() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        anyio.run(main)
    except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as gone:
        # The client died while an answer was on its way: the same as its end.
        sys.stderr.write(f"anaphora: the client has gone ({gone.exceptions[0]!r})\n")


def _http(server: Server[Any], host: str, port: int) -> None:
    import uvicorn

    # Refuses any Host or Origin that is not this machine, so that no page in a browser gets in.
    app = server.streamable_http_app(host=host)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False)
    listening = config.bind_socket()
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"anaphora: http://{shown}:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    uvicorn.Server(config).run(sockets=[listening])


def _address(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise InvalidInput("http", given, "expected HOST:PORT, e.g. 127.0.0.1:8765")
    if host not in LOOPBACK:
        raise InvalidInput(
            "http", given, "only this machine itself may be served (127.0.0.1, localhost or ::1)"
        )
    return host, int(port)
