"""The server over HTTP: for those who have a token, on this machine or on any address.

Every request needs a token of the home that opens the namespace, on this machine's own addresses
that of the user who runs the server or one that was made. There any other Host is refused, and
everywhere the Origin of another site, so that no page in a browser gets in.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from anaphora.api.workers import Workers
from anaphora.errors import InvalidInput
from anaphora.surfaces.access import OWN, bearer, is_own

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from anaphora.store.tokens import Token
    from anaphora.surfaces.mcp_server.session import ServerSession

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
SESSIONS: Final[Mapping[str, Any]] = {"max_sessions": 200, "session_idle_timeout": 1800.0}
"""How many clients may be in a session, and after how many seconds of silence one is over."""
_WANTED: Final = "send Authorization: Bearer <token> with a token that opens this namespace"
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


def run_http(
    server: Server[Any],
    session: ServerSession,
    host: str,
    port: int,
    own: str | None,
    *,
    open_to_all: bool,
) -> None:
    """Serve at `http://host:port/mcp` until stopped, and say so on standard error.

    `own` is the token of the user who runs it; `open_to_all` asks nobody on this machine for one.
    Raises `InvalidInput` for an address that others can reach while there is no token.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    from anaphora.surfaces.connections import Limits, throttled_logs, uvicorn_settings

    if is_loopback(host):
        app: Any = server.streamable_http_app(host=host, **SESSIONS)
    else:
        if not session.memory().tokens.any():
            reason = (
                "other machines can reach this address: create a token first "
                "(anaphora token create)"
            )
            raise InvalidInput("http", host, reason)
        # Who has a token may come by any name.
        anyone = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(host=host, transport_security=anyone, **SESSIONS)
    gate = Gate(app, session, own if is_loopback(host) else None, required=not open_to_all)
    config = uvicorn.Config(
        gate,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        **uvicorn_settings(Limits()),
    )
    listening = config.bind_socket()
    # It is made for servers with several processes; here no other program is to have it.
    listening.set_inheritable(False)
    # Before it is announced: who reads that line may come at once.
    listening.listen(config.backlog)
    shown = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"anaphora: http://{shown}:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    with throttled_logs():
        uvicorn.Server(config).run(sockets=[listening])


class Gate:
    """Lets requests in that have a token which opens the namespace, or need none."""

    def __init__(
        self, app: ASGIApp, session: ServerSession, own: str | None, *, required: bool
    ) -> None:
        self._app = app
        self._session = session
        self._own = own
        self._required = required
        # Who is let in must not wait behind the calls of those who are.
        self._checking = Workers(ThreadPoolExecutor(2, thread_name_prefix="anaphora-gate"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        refused = await self._refused(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("transfer-encoding") and headers.get("content-length"):
            # Two lengths of one body: who stands between may have believed the other.
            return _refusal(400, "expected either Content-Length or Transfer-Encoding")
        if not _same_site(headers):
            return _refusal(403, "other sites may not call this server")
        secret = headers.get("authorization")
        token = None if secret is None else await self._token_of(secret)
        if token is None and (self._required or secret is not None):
            return _refusal(401, _WANTED)
        scope[CALLER] = token
        return None

    async def _token_of(self, authorization: str) -> Token | None:
        secret = bearer(authorization)
        if secret is None:
            return None
        return OWN if is_own(secret, self._own) else await self._checking.do(self._token, secret)

    def _token(self, secret: str) -> Token | None:
        memory = self._session.memory()
        token = memory.tokens.check(secret)
        return token if token is not None and token.opens(memory.namespace) else None


def _same_site(headers: Headers) -> bool:
    """Whether no page asks, or one that this server gave."""
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _refusal(status: int, words: str) -> Response:
    challenge = {"WWW-Authenticate": 'Bearer realm="anaphora"'} if status == 401 else {}
    headers = {"Connection": "close", **challenge}
    return Response(f'{{"error": "{words}"}}', status, headers, "application/json")
