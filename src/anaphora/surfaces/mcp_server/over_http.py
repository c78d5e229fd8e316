"""The server over HTTP: this machine alone, or any address for those who have a token.

In: the SDK's server, an address. Out: nothing; it serves until it is stopped. On this machine's own
addresses any other Host or Origin is refused, so that no page in a browser gets in; on others every
request needs a token of the home that opens the namespace.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from anaphora.store.tokens import Token
    from anaphora.surfaces.mcp_server.desk import Desk

    Scope = MutableMapping[str, Any]
    App = Callable[[Scope, Any, Any], Awaitable[None]]

__all__ = ["CALLER", "Gate", "parsed_address", "run_http"]

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
CALLER: Final = "anaphora.token"
"""Where the scope of a request has the token that it came with."""


def parsed_address(given: str) -> tuple[str, int]:
    """HOST:PORT taken apart; port 0 takes a free one. Raises `InvalidInput`."""
    host, _, port = given.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise InvalidInput("http", given, "expected HOST:PORT, e.g. 127.0.0.1:8765")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host in LOOPBACK


def run_http(server: Server[Any], desk: Desk, host: str, port: int) -> None:
    """Serve at `http://host:port/mcp` until stopped, and say so on standard error.

    Raises `InvalidInput` for an address that others can reach while there is no token.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    if is_loopback(host):
        app: Any = server.streamable_http_app(host=host)
    else:
        if not desk.memory().tokens.any():
            reason = "others can reach this address: make a token first (anaphora token create)"
            raise InvalidInput("http", host, reason)
        # Who has a token may come by any name.
        anyone = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(host=host, transport_security=anyone)
    gate = Gate(app, desk, required=not is_loopback(host))
    config = uvicorn.Config(gate, host=host, port=port, log_level="warning", access_log=False)
    listening = config.bind_socket()
    # It is made for servers with several processes; here no other program is to have it.
    listening.set_inheritable(False)
    # Before it is announced: who reads that line may come at once.
    listening.listen(config.backlog)
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"anaphora: http://{shown}:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    uvicorn.Server(config).run(sockets=[listening])


class Gate:
    """Lets requests in that have a token which opens the namespace, or need none."""

    def __init__(self, app: App, desk: Desk, *, required: bool) -> None:
        self._app = app
        self._desk = desk
        self._required = required

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """One request, or the life of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secret = _secret(scope)
        token = None if secret is None else await self._desk.quick.do(self._token, secret)
        if token is None and (self._required or secret is not None):
            await _refuse(send)
            return
        scope[CALLER] = token
        await self._app(scope, receive, send)

    def _token(self, secret: str) -> Token | None:
        memory = self._desk.memory()
        token = memory.tokens.check(secret)
        return token if token is not None and token.opens(memory.namespace) else None


def _secret(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, secret = value.decode("latin-1").partition(" ")
            return secret.strip() if kind.lower() == "bearer" else ""
    return None


async def _refuse(send: Any) -> None:
    body = b'{"error": "send Authorization: Bearer <token> with a token that opens this namespace"}'
    headers = [
        (b"content-type", b"application/json"),
        (b"www-authenticate", b'Bearer realm="anaphora"'),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
