"""The gate: checks every request on its way in, and completes every response on its way out.

The middleware puts a `Caller` into the scope, limits size, rate and time, and adds the headers that
keep the page safe in a browser. A refusal is a problem document, sent before the body is read.
"""

from __future__ import annotations

import logging
import math
from asyncio import CancelledError, timeout
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from anyio import move_on_after
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anaphora.calls.caller import CallOrigin, called_from
from anaphora.errors import AnaphoraError, StoreError
from anaphora.features.server.auth import LIVE, Authenticator, is_page
from anaphora.features.server.metrics import Metrics
from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.rates import TokenBuckets
from anaphora.surfaces.rest.calls import DEADLINE, Service
from anaphora.surfaces.rest.problems import (
    REQUEST_ID,
    Problem,
    problem,
    problem_of_any,
    report_request,
)
from anaphora.system.incidents import STOPS, new_id

_log = logging.getLogger(SERVER)
_MOST_KEYS: Final = 10_000
_DIGITS: Final = 18
_REQUEST_HEADER: Final = b"anaphora-request"


@dataclass(slots=True)
class RequestBody:
    """A request body as it arrives: of more than `limit` bytes it raises the problem 413.

    One that is not `wanted` is discarded: it is read only to notice a disconnect, when the response
    has begun and can no longer be refused. `ended` means that no more of it will come.
    """

    _receive: Receive
    limit: int
    wanted: bool
    ended: bool
    received: int = 0

    def check_length(self, declared: str) -> None:
        """Refuse a body by the length that its header declares."""
        # A number with more digits than Python converts is too large in any case.
        digits = declared.lstrip("0")[:_DIGITS] if declared.isdecimal() else ""
        self._refuse_beyond(int(digits or "0"))

    async def receive(self) -> Message:
        """The next chunk, or the message that the client has disconnected."""
        message = await self._next()
        if not self.wanted and "body" in message:
            return {**message, "body": b""}
        self._refuse_beyond(self.received)
        return message

    async def take(self, most: int, seconds: float) -> None:
        """Discard incoming data: up to `most` bytes, for up to `seconds`."""
        most += self.received
        with move_on_after(seconds):
            while not self.ended and self.received < most:
                await self._next()

    def _refuse_beyond(self, size: int) -> None:
        if size > self.limit:
            raise Problem(413, "too_large", f"the body may have at most {self.limit:,} bytes")

    async def _next(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        if not message.get("more_body", False):
            self.ended = True
        return message


CONTENT_POLICY: Final = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_SAFE: Final = [
    (name.encode(), content.encode())
    for name, content in {
        "content-security-policy": CONTENT_POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
    }.items()
]
_WITH_BODY: Final = frozenset({"POST", "PATCH", "PUT"})
# The rest of a refused body is received up to these limits, so that a client that sends all of it
# before reading gets the response instead of a connection reset.
_TAKEN, _TAKEN_SECONDS = 16 * 1024 * 1024, 5.0


class RequestGate:
    """The layer around all routes, which also measures every request."""

    def __init__(self, app: ASGIApp, service: Service, figures: Metrics) -> None:
        self._app = app
        self._figures = figures
        self._options = service.options
        self._limits = {
            "/v1/documents": service.options.document_limit,
            "/v1/import": service.options.import_limit,
        }
        self._auth = Authenticator(service.tokens, service.options)
        self._buckets = TokenBuckets(
            service.options.rate, service.options.burst, service.options.clock, _MOST_KEYS
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan of the server."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # Only HTTP is supported.
            await send({"type": "websocket.close", "code": 1008})
            return
        begun = self._options.clock()
        # Of several values of a header the first one counts.
        headers = {
            name.decode("latin-1"): content.decode("latin-1")
            for name, content in reversed(scope["headers"])
        }
        limit = self._limits.get(scope["path"], self._options.body_limit)
        has_body = scope["method"] in _WITH_BODY
        body = RequestBody(receive, limit, wanted=has_body, ended=not has_body)
        scope[REQUEST_ID] = new_id()
        page = is_page(scope["method"], scope["path"])
        answer = _ResponseWriter(send, body, page, scope[REQUEST_ID])
        try:
            if "transfer-encoding" in headers and "content-length" in headers:
                # Two lengths of one body: a proxy may have believed the other (request smuggling).
                reason = "expected either Content-Length or Transfer-Encoding"
                raise Problem(400, "unreadable", reason, {"Connection": "close"})
            try:
                scope["query_string"].decode()
            except UnicodeDecodeError as error:
                # Bytes that are neither escaped nor UTF-8: later code could not decode them.
                reason = f"byte {error.start + 1} of the query string is not UTF-8"
                raise Problem(400, "unreadable", reason) from error
            self._auth.check_place(headers)
            origin = headers.get("origin")
            answer.allowed = origin if origin in self._options.origins else None
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await _preflight(answer.allowed)(scope, receive, answer.send)
                return
            await self._admit(scope, headers)
            body.check_length(headers.get("content-length", ""))
            token = scope["anaphora.caller"].token
            caller = CallOrigin("http")
            if token is not None:
                caller = CallOrigin("http", token=token.name, person=token.person)
            async with timeout(self._options.seconds) as scope[DEADLINE]:
                with called_from(caller):
                    await self._app(scope, body.receive, answer.send)
        except (CancelledError, *STOPS):
            raise
        except BaseException as error:  # noqa: BLE001 - every request gets a response
            await self._answer_failure(error, scope, receive, answer)
        finally:
            self._figures.record(scope, answer.status, self._options.clock() - begun)

    async def _answer_failure(
        self, error: BaseException, scope: Scope, receive: Receive, answer: _ResponseWriter
    ) -> None:
        if answer.has_begun:
            # The connection ends before the response does, so the client knows that it is cut.
            if isinstance(error, AnaphoraError | Problem | TimeoutError):
                _log.warning("request %s: cut short (%s)", scope[REQUEST_ID], type(error).__name__)
            else:
                report_request(error, scope)
            return
        if isinstance(error, TimeoutError):
            reason = (
                "the timeout was reached; an operation that has begun still finishes on the server"
            )
            await problem(504, "timeout", reason)(scope, receive, answer.send)
            return
        await problem_of_any(error, scope)(scope, receive, answer.send)

    async def _admit(self, scope: Scope, headers: Mapping[str, str]) -> None:
        address = scope.get("client") or ("unknown", 0)
        try:
            token = await self._auth.token_of(headers)
        except StoreError:
            # The process is alive even if its database is not.
            if scope["path"] != LIVE:
                raise
            token = None
        except Problem:
            # Guessing tokens counts against the rate limit, too.
            self._take(f"address {address[0]}")
            raise
        self._take(f"token {token.id}" if token else f"address {address[0]}")
        scope["anaphora.caller"] = self._auth.caller(token, scope["method"], scope["path"], headers)

    def _take(self, key: str) -> None:
        """Count a request. Raises the problem 429, with the time to retry."""
        wait = self._buckets.take(key)
        if wait:
            seconds, limit = max(1, math.ceil(wait)), f"limit {self._buckets.rate:g} per second"
            raise Problem(
                429,
                "rate",
                f"too many requests ({limit}); retry in {seconds} s",
                {"Retry-After": str(seconds)},
            )


def _preflight(allowed: str | None) -> Response:
    if allowed is None:
        raise Problem(403, "origin", "this origin is not allowed (--allow-origin)")
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type, Anaphora-Namespace",
            "Access-Control-Max-Age": "600",
        },
    )


class _ResponseWriter:
    """Sends the response with security headers, and with CORS headers for an allowed origin."""

    def __init__(self, send: Send, coming: RequestBody, page: bool, request_id: str) -> None:
        self._send = send
        self._coming = coming
        self._page = page
        self._request_id = request_id
        self.has_begun = False
        self.status = 500
        self.allowed: str | None = None

    async def send(self, message: Message) -> None:
        """Send a message on."""
        if message["type"] == "http.response.start":
            self.has_begun, self.status = True, message["status"]
            headers = MutableHeaders(raw=message["headers"])
            headers.raw.extend(_SAFE)
            headers.raw.append((_REQUEST_HEADER, self._request_id.encode()))
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
