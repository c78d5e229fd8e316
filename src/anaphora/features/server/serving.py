"""The server: memory over HTTP for programs, and the page for people.

A question gets the JSON that every other surface gives. Importing this package imports no web
framework; `create_app` and `serve` do.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from anaphora import __version__
from anaphora.errors import InvalidInput
from anaphora.surfaces.rest.options import ServerOptions, is_loopback
from anaphora.system.environment import environment

if TYPE_CHECKING:
    from fastapi import FastAPI
    from uvicorn import Config, Server

    from anaphora.api.memory import Memory
    from anaphora.features.server.processes import HandedConnections, Siblings
    from anaphora.store.tokens import Tokens

__all__ = ["ServerOptions", "create_app", "serve"]

_GRACE: Final = 30
"""Seconds that running requests have when the server is told to stop."""


def application_over(memory: Memory, **options: Any) -> FastAPI:
    """The application over `memory` with these options of the server; see `ServerOptions`."""
    return create_app(memory, settings=ServerOptions(**options))


def create_app(
    memory: Memory, *, tokens: Tokens | None = None, settings: ServerOptions | None = None
) -> FastAPI:
    """An ASGI application over an open memory, which stays the caller's to close.

    `tokens` are by default those of the memory's own home.
    """
    from anaphora.features.server.app import build

    return build(memory, tokens or memory.tokens, settings or ServerOptions())


def serve(
    memory: Memory,
    host: str,
    port: int,
    options: ServerOptions,
    *,
    open_to_all: bool = False,
    on_start: Callable[[str], None] | None = None,
    processes: int = 1,
    command: Sequence[str] = (),
    descriptor: int | None = None,
    facts: Mapping[str, object] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. `on_start` receives the URL; port 0 chooses a free one.

    `processes` processes answer; the others are started by `command`. They get a `descriptor`
    through which connections come, bind no address, and announce nothing.

    `facts` are logged once the server listens, in addition to its own.

    On loopback the user who runs it has a token of their own, and the URL opens the page with it;
    `open_to_all` requires none on this machine. With `options.require_token`, and at any other
    address, only created tokens are valid.

    Raises `InvalidInput` for an address that may not be used, `StoreError`.
    """
    import uvicorn

    from anaphora.features.server.collecting import short_collections
    from anaphora.features.server.processes import (
        HandedConnections,
        Siblings,
        listen,
        read_own_token,
    )
    from anaphora.ops.backup.staging import sweep
    from anaphora.surfaces.connections import ConnectionLimits, throttled_logs, uvicorn_settings
    from anaphora.surfaces.logs import log_start, server_logs

    # Windows cannot hand over connections.
    if processes > 1 and sys.platform == "win32":
        raise InvalidInput("processes", processes, "one process is all there is on Windows")
    is_first = descriptor is None
    own_token = None if is_first else read_own_token()
    options = _with_access(memory, host, options, open_to_all=open_to_all, own_token=own_token)

    if is_first:
        # Remove what a server left behind that was killed during an upload.
        sweep(memory.home)
    else:
        options = replace(options, dream_every=None)
    app = create_app(memory, settings=options)
    handed_connections = None if descriptor is None else HandedConnections(descriptor)
    siblings = Siblings(command, options.own) if is_first and processes > 1 else None
    limits = ConnectionLimits(options.connections, options.head_seconds, options.body_seconds)
    config = uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=port,
        log_level="warning",
        access_log=False,
        # Its records go to the handler of `server_logs`.
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=64 * 1024,
        **uvicorn_settings(limits, handed_connections or siblings),
    )

    def announce(number: int) -> None:
        if on_start is not None:
            url_host = f"[{host.strip('[]')}]" if ":" in host else host
            # The fragment stays in the browser: servers and logs never see it.
            link = f"/#token={options.own}" if options.own else ""
            on_start(f"http://{url_host}:{number}{link}")
        log_start(
            **{
                "version": __version__,
                "port": number,
                "processes": processes,
                "token": "required" if options.require_token else "not required",
                **(facts or {}),
            }
        )

    # uvicorn raises the signal again after stopping; the memory must still be closed in order.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)
    try:
        with ExitStack() as stack:
            stack.enter_context(server_logs(environment(), "http"))
            stack.enter_context(throttled_logs())
            stack.enter_context(short_collections())
            sockets: list[Any] | None = None
            if handed_connections is not None:
                stack.enter_context(handed_connections.channel)
                sockets = []
            elif siblings is not None:
                sockets = [stack.enter_context(listen(host, port))]
                stack.enter_context(siblings.running(processes - 1))
            _announcing_server(config, handed_connections, siblings, announce).run(sockets=sockets)
    except (SystemExit, OSError):
        raise InvalidInput(
            "port", port, f"cannot listen on it at {host}; choose a free port"
        ) from None


def _announcing_server(
    config: Config,
    handed: HandedConnections | None,
    siblings: Siblings | None,
    announce: Callable[[int], None],
) -> Server:
    """A server that announces its port, or takes the connections that are handed to it."""
    import uvicorn

    class AnnouncingServer(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            if not self.started:
                return
            if handed is not None:
                config = self.config
                handed.take_in(
                    lambda: config.http_protocol_class(  # type: ignore[call-arg]
                        config, self.server_state, self.lifespan.state
                    )
                )
            else:
                if siblings is not None:
                    await siblings.ready()
                announce(self.servers[0].sockets[0].getsockname()[1])

        async def shutdown(self, sockets: Any = None) -> None:
            if handed is not None:
                handed.stop()
            await super().shutdown(sockets=sockets)

    return AnnouncingServer(config)


def _with_access(
    memory: Memory, host: str, options: ServerOptions, *, open_to_all: bool, own_token: str | None
) -> ServerOptions:
    """The options with the tokens and host names that the address requires."""
    if open_to_all and (options.require_token or not is_loopback(host)):
        raise InvalidInput(
            "no-token",
            host,
            "needs a loopback address, and cannot be combined with --require-token",
        )
    if open_to_all:
        return options
    if options.require_token or not is_loopback(host):
        if not memory.tokens.any():
            raise InvalidInput(
                "host" if not is_loopback(host) else "require-token",
                host,
                "there is no token yet: create one with `anaphora token create NAME`",
            )
        return replace(
            options,
            require_token=True,
            hosts=(*options.hosts, host),
            any_address=not is_loopback(host),
        )
    from anaphora.surfaces import access

    own_token = own_token or access.own_secret(memory.home)
    return replace(options, require_token=True, own=own_token, hosts=(*options.hosts, host))
