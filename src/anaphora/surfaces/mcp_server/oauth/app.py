"""The endpoints of OAuth: discovery, registration, the owner's word, tokens, revocation.

Nobody is sent on to a client before the owner has said so: whoever registers could otherwise use
the server to lead others astray. Requests that cost something are bounded for each caller: those of
a client that has registered by its id, others by the address that they come from.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, TextIO
from urllib.parse import parse_qsl, urlsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import AuthenticationError, ClientAuthenticator
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from anaphora.api.memory import Memory
from anaphora.api.workers import Workers
from anaphora.core.environment import environment
from anaphora.core.incidents import report
from anaphora.errors import AnaphoraError
from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.mcp_server.callers import Buckets, peer_of
from anaphora.surfaces.mcp_server.oauth.address import PATH, SCOPES, PublicAddress
from anaphora.surfaces.mcp_server.oauth.consent import Consents, Waiting, is_code
from anaphora.surfaces.mcp_server.oauth.page import consent_page, told_page
from anaphora.surfaces.mcp_server.oauth.provider import Provider

_MOST_BYTES: Final = 64 * 1024
_RATE, _BURST = 0.5, 30
"""Registrations of one caller, and requests of one client: so many a second on average, and at
once."""
_TIMES: Final = 10
"""All callers together may have so many times as much."""

_log = logging.getLogger(SERVER)

Endpoint = Callable[[Request], Awaitable[Response]]


class AuthorizationServer:
    """The endpoints over the memory of a server, and the tokens that they give out."""

    def __init__(
        self,
        memory: Callable[[], Memory],
        workers: Workers,
        address: PublicAddress,
        *,
        told: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.address = address
        self._memory = memory
        self._workers = workers
        self._consents = Consents(clock)
        self.provider = Provider(memory, workers, address, self._consents, told)
        self._registrations = Buckets(_RATE, _BURST, _TIMES, clock)
        self._unknown = Buckets(_RATE, _BURST, _TIMES, clock)
        self._requests = Buckets(_RATE, _BURST, _TIMES, clock)
        self._authorize = AuthorizationHandler(self.provider)
        self._authenticator = ClientAuthenticator(self.provider)
        self._token = TokenHandler(self.provider, self._authenticator)
        self._register = RegistrationHandler(self.provider, ClientRegistrationOptions(enabled=True))
        self._routes: dict[str, tuple[Endpoint, list[str]]] = {
            "/.well-known/oauth-authorization-server": (self._metadata, ["GET"]),
            "/.well-known/oauth-protected-resource": (self._resource, ["GET"]),
            f"/.well-known/oauth-protected-resource{PATH}": (self._resource, ["GET"]),
            "/register": (self._registered, ["POST"]),
            "/authorize": (self._authorized, ["GET", "POST"]),
            "/approve": (self._approved, ["GET", "POST"]),
            "/token": (self._issued, ["POST"]),
            "/revoke": (self._revoked, ["POST"]),
        }
        routes = [
            Route(path, endpoint, methods=methods)
            for path, (endpoint, methods) in self._routes.items()
        ]
        self.app = RequestBodyLimitMiddleware(
            Starlette(
                routes=routes, exception_handlers={AnaphoraError: _failed, Exception: _unexpected}
            ),
            _MOST_BYTES,
        )

    def has(self, path: str) -> bool:
        """Whether a path is one of these endpoints."""
        return path in self._routes

    @property
    def challenge(self) -> str:
        """Where a client that has no token finds out how to get one (RFC 9728, 5.1)."""
        metadata = self.address.resource_metadata
        return f'Bearer realm="anaphora", resource_metadata="{metadata}", scope="read write"'

    async def _metadata(self, _: Request) -> Response:
        """RFC 8414."""
        origin = self.address.origin
        return JSONResponse(
            {
                "issuer": origin,
                "authorization_endpoint": f"{origin}/authorize",
                "token_endpoint": f"{origin}/token",
                "registration_endpoint": f"{origin}/register",
                "revocation_endpoint": f"{origin}/revoke",
                "scopes_supported": list(SCOPES),
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _resource(self, _: Request) -> Response:
        """RFC 9728."""
        return JSONResponse(
            {
                "resource": self.address.resource,
                "resource_name": "Anaphora",
                "authorization_servers": [self.address.origin],
                "scopes_supported": list(SCOPES),
                "bearer_methods_supported": ["header"],
            }
        )

    async def _registered(self, request: Request) -> Response:
        if not self._registrations.take(peer_of(request.scope)):
            return _later()
        return await self._register.handle(request)

    async def _authorized(self, request: Request) -> Response:
        if not await self._may_ask(request):
            return _later()
        answer = await self._authorize.handle(request)
        to = answer.headers.get("location", "")
        if answer.status_code == 302 and not to.startswith(f"{self.address.origin}/approve?"):
            said = dict(parse_qsl(urlsplit(to).query))
            why = f"{said.get('error', '')}: {said.get('error_description', '')}"
            return told_page("This request cannot be granted", why, 400)
        return answer

    async def _may_ask(self, request: Request) -> bool:
        given = request.query_params if request.method == "GET" else await request.form()
        client_id = str(given.get("client_id", ""))
        # Who floods with new or invented clients takes nothing from one that registered before.
        if await self.provider.get_client(client_id) is None:
            return self._unknown.take(peer_of(request.scope))
        return self._requests.take(client_id)

    async def _approved(self, request: Request) -> Response:
        given = request.query_params if request.method == "GET" else await request.form()
        waiting = self._consents.find(str(given.get("request", "")))
        if waiting is None:
            return told_page(
                "This request has ended", "Begin again in the program that you connect.", 410
            )
        if request.method == "GET":
            return consent_page(waiting, await self._namespace())
        if not self._is_own_page(request):
            return told_page("Not from this page", "Answer on the page of your server.", 403)
        if given.get("decision") != "allow":
            self._consents.end(waiting)
            return self._sent_back(waiting, error="access_denied")
        wanted = {"read", *(waiting.asked.scopes if given.get("write") else ())}
        scopes = tuple(one for one in SCOPES if one in wanted)
        return await self._allowed(waiting, str(given.get("secret", "")), scopes)

    async def _allowed(self, waiting: Waiting, secret: str, scopes: tuple[str, ...]) -> Response:
        approver = None
        if not is_code(waiting, secret):
            approver = await self.provider.approver(secret.strip())
            if approver is None:
                left = self._consents.refuse(waiting)
                words = f"That is neither the code nor a token for this namespace ({left} left)."
                if left:
                    return consent_page(waiting, await self._namespace(), words)
                return told_page("Too many wrong answers", "Begin again in the program.", 403)
            if approver.read_only:
                scopes = ("read",)
        if not self._consents.end(waiting):
            # Somebody answered it while the token was looked up.
            return told_page("This request has ended", "It was answered meanwhile.", 410)
        try:
            code = await self.provider.grant(waiting.asked, scopes, approver)
        except AnaphoraError:
            return told_page("It could not be granted", "The log of the server says why.", 503)
        return self._sent_back(waiting, code=code)

    def _sent_back(self, waiting: Waiting, **said: str) -> Response:
        asked = waiting.asked
        to = construct_redirect_uri(
            asked.redirect_uri, **said, state=asked.state, iss=self.address.origin
        )
        return RedirectResponse(to, 303, {"Cache-Control": "no-store"})

    async def _issued(self, request: Request) -> Response:
        resource = (await request.form()).get("resource")
        if resource is not None and not self.address.is_resource(str(resource)):
            said = {"error": "invalid_target", "error_description": "another resource"}
            return JSONResponse(said, 400, {"Cache-Control": "no-store"})
        answer: Response = await self._token.handle(request)
        return answer

    async def _revoked(self, request: Request) -> Response:
        """RFC 7009. The SDK's own wants a secret, which no client of ours has."""
        try:
            client = await self._authenticator.authenticate_request(request)
        except AuthenticationError as error:
            said = {"error": "invalid_client", "error_description": error.message}
            return JSONResponse(said, 401, {"Cache-Control": "no-store"})
        await self.provider.revoke(client, str((await request.form()).get("token", "")))
        # The same for a token that there is not: it opens nothing now.
        return Response(status_code=200, headers={"Cache-Control": "no-store"})

    async def _namespace(self) -> str:
        return await self._workers.do(lambda: self._memory().namespace)

    def _is_own_page(self, request: Request) -> bool:
        """Whether the form that was sent stood on a page of this server."""
        origin = request.headers.get("origin", "")
        own = {self.address.origin, f"http://{request.headers.get('host', '').lower()}"}
        return origin.lower() in own


async def _failed(_: Request, error: Exception) -> Response:
    # What the error quotes can be an address with a code in it.
    _log.warning("OAuth: %s", type(error).__name__)
    said = {"error": "server_error", "error_description": "details are in the server's log"}
    return JSONResponse(said, 503, {"Cache-Control": "no-store"})


async def _unexpected(_: Request, error: Exception) -> Response:
    incident = report(environment(), error, surface="mcp", operation="oauth")
    words = f"something went wrong (incident {incident.id})"
    said = {"error": "server_error", "error_description": words}
    return JSONResponse(said, 500, {"Cache-Control": "no-store"})


def _later() -> Response:
    said = {"error": "temporarily_unavailable", "error_description": "too many requests"}
    return JSONResponse(said, 429, {"Retry-After": "60", "Cache-Control": "no-store"})
