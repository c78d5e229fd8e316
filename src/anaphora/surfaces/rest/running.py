"""Running the server: one process on one address, until it is told to stop.

In: an open memory, an address. Out: when it returns, every request that was running has its answer
and no call of the memory is under way. Any address but loopback is refused without a token.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput
from anaphora.ops.backup.staging import sweep
from anaphora.surfaces import own_token
from anaphora.surfaces.rest import create_app, need_server
from anaphora.surfaces.rest.options import ServerOptions, is_loopback

_GRACE = 30


def run(
    memory: Memory,
    host: str,
    port: int,
    options: ServerOptions,
    *,
    open_to_all: bool = False,
    on_start: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. `on_start` is told the URL, port 0 being a free one.

    On loopback the user who runs it has a token of their own, and the URL opens the page with it;
    `open_to_all` asks nobody on this machine for one. With `options.require_token`, and on any
    other address, only tokens that were made count.

    Raises `InvalidInput` for an address that may not be used, `MissingExtra`, `StoreError`.
    """
    _, _, uvicorn = need_server()
    options = _guarded(memory, host, options, open_to_all=open_to_all)
    from anaphora.surfaces.connections import Limits, few_lines, served_by

    # What a server left that was killed in the middle of an upload.
    sweep(memory.home)
    app = create_app(memory, settings=options)
    config = uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=port,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=64 * 1024,
        **served_by(Limits(options.connections, options.head_seconds, options.body_seconds)),
    )

    class Told(uvicorn.Server):  # type: ignore[misc,name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            if on_start is not None and self.started:
                number = self.servers[0].sockets[0].getsockname()[1]
                shown = f"[{host.strip('[]')}]" if ":" in host else host
                # Behind the # it stays in the browser: no server and no log is told.
                link = f"/#token={options.own}" if options.own else ""
                on_start(f"http://{shown}:{number}{link}")

    # The server hands a signal on when it has stopped: the memory must be closed then, in peace.
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)
    try:
        with few_lines():
            Told(config).run()
    except SystemExit:
        raise InvalidInput("port", port, f"expected one that is free, on {host}") from None


def _guarded(
    memory: Memory, host: str, options: ServerOptions, *, open_to_all: bool
) -> ServerOptions:
    if open_to_all and (options.require_token or not is_loopback(host)):
        raise InvalidInput("no-token", host, "loopback, and no --require-token beside it")
    if open_to_all:
        return options
    if options.require_token or not is_loopback(host):
        if not memory.tokens.any():
            raise InvalidInput(
                "host" if not is_loopback(host) else "require-token",
                host,
                "there is no token yet: make one by `anaphora token create NAME`",
            )
        return replace(
            options,
            require_token=True,
            hosts=(*options.hosts, host),
            any_address=not is_loopback(host),
        )
    own = own_token.made(memory.home)
    return replace(options, require_token=True, own=own, hosts=(*options.hosts, host))
