"""The Model Context Protocol server for coding agents, over standard input or HTTP.

It contains no recall logic. It answers `initialize` and `tools/list` before touching any model or
database, and ends when its client does. Standard output carries the protocol alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.errors import InvalidInput, MissingExtra
from anaphora.system.environment import environment, trial_namespace

if TYPE_CHECKING:
    from anaphora.surfaces.mcp_server.session import ServerSession

__all__ = ["serve"]

INTERRUPTED: Final = 130


def serve(
    home: Path | None = None,
    namespace: str = "default",
    conversations: Path | None = None,
    *,
    tools: str = "default",
    http: str | None = None,
    open_to_all: bool = False,
    oauth: str | None = None,
) -> None:
    """Serve the memory of this home until the client disconnects.

    `tools` is "default" or "all"; `http` is HOST:PORT. Over HTTP the user's own token is stored in
    the home; `open_to_all` requires none on this machine; `oauth` is the address at which remote
    clients reach the server and get a token by OAuth. The memory is opened in the background after
    the handshake. Raises `InvalidInput` and, for HTTP without the SDK, `MissingExtra`.
    """
    if tools not in ("default", "all"):
        raise InvalidInput("tools", tools, "expected default or all")
    if oauth is not None and (http is None or open_to_all):
        raise InvalidInput("oauth", oauth, "needs --http, and cannot be combined with --no-token")
    if http is not None and find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp")
    from anaphora.api.memory import Memory
    from anaphora.surfaces.logs import server_logs
    from anaphora.surfaces.mcp_server.session import ServerSession
    from anaphora.surfaces.mcp_server.tools import all_tools, default_tools

    trial = trial_namespace(environment()) if http is None else None
    namespace = trial or namespace
    session = ServerSession(
        lambda: Memory.open(
            home, namespace=namespace, conversations_dir=conversations, share_model="start"
        )
    )
    names = tuple(all_tools()) if tools == "all" else default_tools()
    if http is None:
        from anaphora.surfaces.mcp_server.server import ToolServer
        from anaphora.surfaces.mcp_server.stdio import serve_stdio

        handlers = ToolServer(session, names, started=Path.cwd(), roots=True)
        run_stdio = partial(serve_stdio, handlers, session.begin, trial=trial)
        erase = partial(_erase_trial, home, conversations, trial) if trial else None
        with server_logs(environment(), "mcp"):
            _run_until_end(run_stdio, session, erase)
        return
    from anaphora.settings import load_settings
    from anaphora.surfaces import access
    from anaphora.surfaces.mcp_server.address import public_address
    from anaphora.surfaces.mcp_server.http import is_loopback, parsed_address, run_http
    from anaphora.surfaces.mcp_server.sdk import build_server

    host, port = parsed_address(http)
    public = None if oauth is None else public_address(oauth)
    if open_to_all and not is_loopback(host):
        raise InvalidInput("no-token", host, "must be a loopback address")
    uses_own = is_loopback(host) and not open_to_all
    own_token = access.own_secret(load_settings(home).home) if uses_own else None
    # The folder in which a server for several clients was started says nothing about any of them,
    # and folders of another machine do not exist here.
    server = build_server(session, names, started=None, roots=is_loopback(host))
    run = partial(
        run_http, server, session, host, port, own_token, open_to_all=open_to_all, public=public
    )
    _run_until_end(run, session)


def _erase_trial(home: Path | None, conversations: Path | None, trial: str) -> None:
    from anaphora.container.home import Container
    from anaphora.settings import load_settings

    container = Container.open(load_settings(home, conversations))
    try:
        container.erase_namespace(trial)
    finally:
        container.close(0)


def _run_until_end(
    run: Callable[[], None], session: ServerSession, afterwards: Callable[[], None] | None = None
) -> None:
    code = 0
    try:
        run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        is_finished = session.finish()
        if afterwards is not None:
            afterwards()
    if code or not is_finished:
        # A thread still waits for a disk, a model or a terminal. The database is safe at any
        # instant, and a server without a client must not stay.
        sys.stderr.flush()
        os._exit(code)
