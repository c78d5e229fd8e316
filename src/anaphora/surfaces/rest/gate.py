"""The gate: what every request goes through on its way in, and every answer on its way out.

In: ASGI. Out: ASGI, with a `Caller` in the scope and the headers that a browser needs to keep
the page safe. A refusal is a problem document; nothing of the body was read by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anyio import fail_after
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anaphora.surfaces.rest.auth import Door, is_page
from anaphora.surfaces.rest.calls import Service, is_long
from anaphora.surfaces.rest.limits import Buckets, Coming, counted
from anaphora.surfaces.rest.problems import Problem, problem

CONTENT_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_SAFE: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_WITH_BODY: Final = frozenset({"POST", "PATCH", "PUT"})
# What is still coming of a body that was refused is taken for so long, so that who sends all of it
# before reading finds the answer, and not a connection that was reset.
_TAKEN, _TAKEN_SECONDS = 16 * 1024 * 1024, 5.0


class Gate:
    """Middleware around everything but the measuring of it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._options = service.options
        self._door = Door(service.tokens, service.options)
        self._buckets = Buckets(service.options.rate, service.options.burst, service.options.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There are no other conversations than requests here.
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        wanted = scope["method"] in _WITH_BODY
        coming = Coming(receive, ended=not wanted)
        answer = _Answer(send, coming, is_page(scope["method"], scope["path"]))
        receive = coming.receive
        try:
            if "transfer-encoding" in headers and "content-length" in headers:
                # Two lengths of one body: who stands between may have believed the other.
                reason = "one of Content-Length and Transfer-Encoding"
                raise Problem(400, "unreadable", reason, {"Connection": "close"})
            self._door.check_place(headers)
            answer.allowed = self._foreign(headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await self._preflight(headers)(scope, receive, answer.send)
                return
            await self._let_in(scope, headers)
            limit, declared = self._limit(scope["path"]), headers.get("content-length")
            body = counted(receive, limit, declared, wanted=wanted)
            with fail_after(self._seconds(scope["method"], scope["path"])):
                await self._app(scope, body, answer.send)
        except Problem as refused:
            if answer.begun:
                raise
            told = problem(refused.status_code, refused.name, refused.detail, refused.headers)
            await told(scope, receive, answer.send)
        except TimeoutError:
            if answer.begun:
                raise
            reason = "what was begun is finished all the same; ask again"
            await problem(504, "timeout", reason)(scope, receive, answer.send)

    async def _let_in(self, scope: Scope, headers: Headers) -> None:
        address = scope.get("client") or ("unknown", 0)
        try:
            token = await self._door.token_of(headers)
        except Problem:
            # Guessing is limited like everything else.
            self._buckets.take(f"address {address[0]}")
            raise
        self._buckets.take(f"token {token.id}" if token else f"address {address[0]}")
        scope["anaphora.caller"] = self._door.caller(token, scope["method"], scope["path"], headers)

    def _limit(self, path: str) -> int:
        return self._options.import_limit if path == "/v1/import" else self._options.body_limit

    def _seconds(self, method: str, path: str) -> float:
        return self._options.long_seconds if is_long(method, path) else self._options.seconds

    def _foreign(self, headers: Headers) -> str | None:
        origin = headers.get("origin")
        return origin if origin in self._options.origins else None

    def _preflight(self, headers: Headers) -> Response:
        if self._foreign(headers) is None:
            raise Problem(403, "origin", "pages of that site may not call this server")
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
                "Access-Control-Allow-Headers": ("Authorization, Content-Type, Anaphora-Namespace"),
                "Access-Control-Max-Age": "600",
            },
        )


class _Answer:
    """What goes out: with safe headers, and for an allowed origin with those that allow it."""

    def __init__(self, send: Send, coming: Coming, page: bool) -> None:
        self._send = send
        self._coming = coming
        self._page = page
        self.begun = False
        self.allowed: str | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in _SAFE.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-cache" if self._page else "no-store")
            if self.allowed is not None:
                headers["Access-Control-Allow-Origin"] = self.allowed
                headers.add_vary_header("Origin")
            else:
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
            if not self._coming.ended:
                headers["Connection"] = "close"
        elif not message.get("more_body", False) and not self._coming.ended:
            await self._send({**message, "more_body": True})
            await self._coming.take(_TAKEN, _TAKEN_SECONDS)
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)
