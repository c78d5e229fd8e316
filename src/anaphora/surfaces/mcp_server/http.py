"""The MCP server over HTTP: for clients with a token, on this machine or at any address.

Every request needs a token of the home that gives access to the namespace; on loopback addresses
the token of the user who runs the server works, too. There any other Host is refused, and
everywhere the Origin of another site, so that no web page can call the server.
"""

from __future__ import annotations

import re
import sys
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anaphora.api.workers import Workers
from anaphora.container.feature import load, registered
from anaphora.errors import AnaphoraError, InvalidInput, StoreError
from anaphora.store.tokens import PREFIX
from anaphora.surfaces.access import OWN, bearer, is_own
from anaphora.surfaces.mcp_server.address import LOOPBACK, PublicAddress
from anaphora.surfaces.mcp_server.callers import peer_of
from anaphora.surfaces.mcp_server.sessions import FairSessions
from anaphora.system.environment import environment
from anaphora.system.incidents import STOPS, report

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from anaphora.store.tokens import Token
    from anaphora.surfaces.mcp_server.session import ServerSession

_HOST: Final = re.compile(r"(\[[0-9a-f:.]*\]|[^\[\]:]*)(?::\d*)?")
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
SESSIONS: Final[Mapping[str, Any]] = {"max_sessions": None, "session_idle_timeout": 1800.0}
"""Seconds of silence after which a session ends; `FairSessions` bounds their number."""
_WANTED: Final = "send Authorization: Bearer <token> with a token that opens this namespace"
CALLER: Final = "anaphora.token"
"""The key in a request's scope of the token that it came with."""


def parsed_address(given: str) -> tuple[str, int]:
    """Split HOST:PORT; port 0 chooses a free one. Raises `InvalidInput`."""
    host, _, port = given.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise InvalidInput("http", given, "expected HOST:PORT, e.g. 127.0.0.1:8765")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host in LOOPBACK


class Authorization(Protocol):
    """What issues tokens to clients elsewhere: a feature's, see `Feature.authorization`."""

    @property
    def app(self) -> ASGIApp:
        """Its endpoints."""
        ...

    @property
    def challenge(self) -> str:
        """Tells a client without a token where to get one."""
        ...

    def has(self, path: str) -> bool:
        """Whether a path is one of its endpoints."""
        ...

    def opened_by(self, secret: str) -> Token | None:
        """The token behind an access token that it issued, if current. Called in a thread."""
        ...


def run_http(
    server: Server[Any],
    session: ServerSession,
    host: str,
    port: int,
    own: str | None,
    *,
    open_to_all: bool,
    public: PublicAddress | None = None,
) -> None:
    """Serve at `http://host:port/mcp` until stopped, and say so on standard error.

    `own` is the token of the user who runs the server; `open_to_all` requires none on this machine;
    at `public` clients get tokens by OAuth. Raises `InvalidInput` for an address that other
    machines can reach if no token exists and none can be obtained.
    """
    import uvicorn

    from anaphora.surfaces.connections import ConnectionLimits, throttled_logs, uvicorn_settings
    from anaphora.surfaces.logs import server_logs

    if not is_loopback(host) and public is None and not session.memory().tokens.any():
        reason = (
            "other machines can reach this address: create a token first (anaphora token create)"
        )
        raise InvalidInput("http", host, reason)
    gate = gated(server, session, host, own, required=not open_to_all, public=public)
    config = uvicorn.Config(
        gate,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        # Its records go to the handler of `server_logs`.
        log_config=None,
        **uvicorn_settings(ConnectionLimits()),
    )
    listening = config.bind_socket()
    # uvicorn makes it inheritable for its own worker processes; no child of ours should have it.
    listening.set_inheritable(False)
    # Listen before announcing: a client that reads the line may connect at once.
    listening.listen(config.backlog)
    url_host = f"[{host}]" if ":" in host else host
    sys.stderr.write(f"anaphora: http://{url_host}:{listening.getsockname()[1]}/mcp\n")
    sys.stderr.flush()
    with server_logs(environment(), "mcp"), throttled_logs():
        uvicorn.Server(config).run(sockets=[listening])


def gated(
    server: Server[Any],
    session: ServerSession,
    host: str,
    own: str | None,
    *,
    required: bool,
    public: PublicAddress | None = None,
) -> TokenGate:
    """The application: the SDK's, behind the gate, with the endpoints of OAuth beside it."""
    from mcp.server.transport_security import TransportSecuritySettings

    loopback = is_loopback(host)
    # At other addresses the token decides, and clients may use any host name.
    security_settings = TransportSecuritySettings(enable_dns_rebinding_protection=loopback)
    if loopback:
        names = [f"{name}:*" for name in _LOOPBACK_NAMES]
        security_settings.allowed_hosts, security_settings.allowed_origins = (
            names,
            [f"http://{n}" for n in names],
        )
        if public is not None:
            security_settings.allowed_hosts = [*names, public.netloc]
            security_settings.allowed_origins = [*security_settings.allowed_origins, public.origin]
    app = server.streamable_http_app(host=host, transport_security=security_settings, **SESSIONS)
    app.add_exception_handler(Exception, _unexpected)
    return TokenGate(
        app, session, own if loopback else None, required=required, here=loopback, public=public
    )


class TokenGate:
    """Admits requests with a token for the namespace, or if none is required."""

    def __init__(
        self,
        app: ASGIApp,
        session: ServerSession,
        own: str | None,
        *,
        required: bool,
        here: bool,
        public: PublicAddress | None,
    ) -> None:
        self._app = app
        self._sessions = FairSessions(app)
        self._session = session
        self._own = own
        self._required = required
        self._here = here
        self._public = public
        # Checking tokens must not wait behind the calls of admitted clients.
        self._checking = Workers(ThreadPoolExecutor(2, thread_name_prefix="anaphora-gate"))
        self.oauth: Authorization | None = None
        if public is not None:
            self.oauth = _load_authorization(public)(session.memory, self._checking, public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._respond(scope, receive, send_noting)
        except (CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - the caller must have an answer
            answer = _failure(error)
            if not begun:
                await answer(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.oauth is not None and self.oauth.has(scope["path"]):
            assert self._public is not None
            headers, refusal = Headers(scope=scope), None
            name = headers.get("host", "").lower()
            is_cross_site = headers.get("sec-fetch-mode") != "navigate" and (
                headers.get("sec-fetch-site") in {"cross-site", "same-site"}
            )
            if self._here and name != self._public.netloc and not _is_loopback_name(name):
                refusal = _refusal(421, "this host name is not allowed")
            elif is_cross_site or not self._same_site(headers):
                refusal = _refusal(403, "other sites may not call this server")
            await (refusal or self.oauth.app)(scope, receive, send)
        else:
            refusal = await self._refuse(scope)
            if refusal is None:
                # A session belongs to a token, or to an address if no token is needed.
                token: Token | None = scope[CALLER]
                caller = f"address {peer_of(scope)}" if token is None else f"token {token.id}"
                if not await self._sessions(scope, receive, send, caller):
                    refusal = _refusal(503, "too many sessions are being opened; try again later")
            if refusal is not None:
                await refusal(scope, receive, send)

    async def _refuse(self, scope: Scope) -> Response | None:
        """The refusal of a request, or None after noting its token in the scope."""
        headers = Headers(scope=scope)
        if headers.get("transfer-encoding") and headers.get("content-length"):
            # Two lengths of one body: a proxy may have believed the other (request smuggling).
            return _refusal(400, "expected either Content-Length or Transfer-Encoding")
        if not self._same_site(headers):
            return _refusal(403, "other sites may not call this server")
        token: Token | None = None
        authorization = headers.get("authorization")
        secret = None if authorization is None else bearer(authorization)
        if secret is not None:
            # The user's own token is valid on loopback addresses only, not through a proxy.
            host = headers.get("host", "").lower()
            direct = self._public is None or _is_loopback_name(host)
            is_users = direct and is_own(secret, self._own)
            token = OWN if is_users else await self._checking.do(self._look_up, secret)
        if token is None and (self._required or authorization is not None):
            challenge = 'Bearer realm="anaphora"' if self.oauth is None else self.oauth.challenge
            if authorization is not None:
                challenge += ', error="invalid_token"'
            return _refusal(401, _WANTED, challenge)
        scope[CALLER] = token
        return None

    def _same_site(self, headers: Headers) -> bool:
        """Whether no web page sent the request, or a page of this server."""
        origin = headers.get("origin")
        if origin is None or (self._public is not None and origin == self._public.origin):
            return True
        try:
            return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        except ValueError:
            return False

    def _look_up(self, secret: str) -> Token | None:
        memory = self._session.memory()
        if self.oauth is not None and secret.startswith(f"{PREFIX}access_"):
            token = self.oauth.opened_by(secret)
        else:
            token = memory.tokens.check(secret)
        return token if token is not None and token.opens(memory.namespace) else None


def _load_authorization(public: PublicAddress) -> Callable[..., Authorization]:
    for feature in registered():
        if feature.authorization:
            makes_server: Callable[..., Authorization] = load(feature.authorization)
            return makes_server
    raise InvalidInput("oauth", public.origin, "this program issues no tokens by OAuth")


def _is_loopback_name(host: str) -> bool:
    """Whether a Host header names this machine, with or without a port."""
    match = _HOST.fullmatch(host)
    return match is not None and match.group(1) in _LOOPBACK_NAMES


def _failure(error: BaseException) -> Response:
    """The answer if the token could not be looked up, or on an unexpected error."""
    if isinstance(error, StoreError):
        return _refusal(503, "stored data cannot be read now; try again later")
    if isinstance(error, AnaphoraError):
        return _refusal(503, "the memory cannot be opened now; `anaphora doctor` tells why")
    incident = report(environment(), error, surface="mcp", operation="http request")
    words = f"something went wrong (incident {incident.id}); {incident.hint}"
    return _refusal(500, words.replace('"', "'"))


async def _unexpected(_: Request, error: Exception) -> Response:
    return _failure(error)


def _refusal(status: int, words: str, challenge: str = "") -> Response:
    headers = {"Connection": "close"}
    if challenge:
        headers["WWW-Authenticate"] = challenge
    return Response(f'{{"error": "{words}"}}', status, headers, "application/json")
