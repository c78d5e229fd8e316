"""The endpoints of OAuth: discovery, registration, consent, tokens, revocation.

A browser is redirected to a client only after the owner has agreed: otherwise any registered client
could use the server as an open redirector. Costly requests are limited per caller: by client id for
registered clients, by address for others.
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
from anaphora.errors import AnaphoraError
from anaphora.features.oauth.consent import Consents, PendingRequest, is_code
from anaphora.features.oauth.page import consent_page, message_page
from anaphora.features.oauth.provider import Provider
from anaphora.store.tokens import Token
from anaphora.surfaces.logs import SERVER
from anaphora.surfaces.mcp_server.address import PATH, SCOPES, PublicAddress
from anaphora.surfaces.mcp_server.callers import CallerBuckets, peer_of
from anaphora.system.environment import environment
from anaphora.system.incidents import report

_MOST_BYTES: Final = 64 * 1024
_RATE, _BURST = 0.5, 30
"""Registrations per caller, and requests per client: average per second, and burst."""
_TIMES: Final = 10
"""The limit for all callers together, as a multiple of that for one."""

_log = logging.getLogger(SERVER)

Endpoint = Callable[[Request], Awaitable[Response]]


class AuthorizationServer:
    """The OAuth endpoints for the memory of a server, and the tokens that they issue."""

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
        self._registrations = CallerBuckets(_RATE, _BURST, _TIMES, clock)
        self._unknown = CallerBuckets(_RATE, _BURST, _TIMES, clock)
        self._requests = CallerBuckets(_RATE, _BURST, _TIMES, clock)
        self._authorize = AuthorizationHandler(self.provider)
        self._authenticator = ClientAuthenticator(self.provider)
        self._token = TokenHandler(self.provider, self._authenticator)
        self._register = RegistrationHandler(self.provider, ClientRegistrationOptions(enabled=True))
        self._routes: dict[str, tuple[Endpoint, list[str]]] = {
            "/.well-known/oauth-authorization-server": (self._metadata, ["GET"]),
            "/.well-known/oauth-protected-resource": (self._resource, ["GET"]),
            f"/.well-known/oauth-protected-resource{PATH}": (self._resource, ["GET"]),
            "/register": (self._register_client, ["POST"]),
            "/authorize": (self._authorize_request, ["GET", "POST"]),
            "/approve": (self._approve, ["GET", "POST"]),
            "/token": (self._issue_tokens, ["POST"]),
            "/revoke": (self._revoke, ["POST"]),
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

    def opened_by(self, secret: str) -> Token | None:
        """The token behind an access token of this server, if current. Called in a thread."""
        return self.provider.opened_by(secret)

    def has(self, path: str) -> bool:
        """Whether a path is one of the OAuth endpoints."""
        return path in self._routes

    @property
    def challenge(self) -> str:
        """Tells a client without a token where to get one (RFC 9728, 5.1)."""
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

    async def _register_client(self, request: Request) -> Response:
        if not self._registrations.take(peer_of(request.scope)):
            return _too_many_requests()
        return await self._register.handle(request)

    async def _authorize_request(self, request: Request) -> Response:
        form = request.query_params if request.method == "GET" else await request.form()
        client_id = str(form.get("client_id", ""))
        # A flood of new or invented client ids must not use up the limit of registered ones.
        if await self.provider.get_client(client_id) is None:
            may_ask = self._unknown.take(peer_of(request.scope))
        else:
            may_ask = self._requests.take(client_id)
        if not may_ask:
            return _too_many_requests()
        answer = await self._authorize.handle(request)
        to = answer.headers.get("location", "")
        if answer.status_code == 302 and not to.startswith(f"{self.address.origin}/approve?"):
            query = dict(parse_qsl(urlsplit(to).query))
            why = f"{query.get('error', '')}: {query.get('error_description', '')}"
            return message_page("This request cannot be granted", why, 400)
        return answer

    async def _approve(self, request: Request) -> Response:
        form = request.query_params if request.method == "GET" else await request.form()
        waiting = self._consents.find(str(form.get("request", "")))
        if waiting is None:
            return message_page(
                "This request has ended", "Begin again in the program that you connect.", 410
            )
        if request.method == "GET":
            return consent_page(waiting, await self._namespace())
        own_origins = {self.address.origin, f"http://{request.headers.get('host', '').lower()}"}
        if request.headers.get("origin", "").lower() not in own_origins:
            return message_page("Not from this page", "Answer on the page of your server.", 403)
        if form.get("decision") != "allow":
            self._consents.end(waiting)
            return self._redirect_back(waiting, error="access_denied")
        granted_scopes = {"read", *(waiting.asked.scopes if form.get("write") else ())}
        scopes = tuple(scope for scope in SCOPES if scope in granted_scopes)
        return await self._allow(waiting, str(form.get("secret", "")), scopes)

    async def _allow(
        self, waiting: PendingRequest, secret: str, scopes: tuple[str, ...]
    ) -> Response:
        approver = None
        if not is_code(waiting, secret):
            approver = await self.provider.approver(secret.strip())
            if approver is None:
                tries_left = self._consents.refuse(waiting)
                words = (
                    f"That is neither the code nor a token for this namespace ({tries_left} left)."
                )
                if tries_left:
                    return consent_page(waiting, await self._namespace(), words)
                return message_page("Too many wrong answers", "Begin again in the program.", 403)
            if approver.read_only:
                scopes = ("read",)
        if not self._consents.end(waiting):
            # It was answered while the token was looked up.
            return message_page("This request has ended", "It was answered meanwhile.", 410)
        try:
            code = await self.provider.grant(waiting.asked, scopes, approver)
        except AnaphoraError:
            return message_page("It could not be granted", "The log of the server says why.", 503)
        return self._redirect_back(waiting, code=code)

    def _redirect_back(self, waiting: PendingRequest, **outcome: str) -> Response:
        access = waiting.asked
        to = construct_redirect_uri(
            access.redirect_uri, **outcome, state=access.state, iss=self.address.origin
        )
        return RedirectResponse(to, 303, {"Cache-Control": "no-store"})

    async def _issue_tokens(self, request: Request) -> Response:
        resource = (await request.form()).get("resource")
        if resource is not None and not self.address.is_resource(str(resource)):
            problem = {"error": "invalid_target", "error_description": "another resource"}
            return JSONResponse(problem, 400, {"Cache-Control": "no-store"})
        answer: Response = await self._token.handle(request)
        return answer

    async def _revoke(self, request: Request) -> Response:
        """RFC 7009. The SDK's endpoint requires a client secret, which public clients lack."""
        try:
            client = await self._authenticator.authenticate_request(request)
        except AuthenticationError as error:
            problem = {"error": "invalid_client", "error_description": error.message}
            return JSONResponse(problem, 401, {"Cache-Control": "no-store"})
        await self.provider.revoke(client, str((await request.form()).get("token", "")))
        # The answer is the same for an unknown token: either way it is invalid now.
        return Response(status_code=200, headers={"Cache-Control": "no-store"})

    async def _namespace(self) -> str:
        return await self._workers.do(lambda: self._memory().namespace)


async def _failed(_: Request, error: Exception) -> Response:
    # The error may quote an address that contains a code.
    _log.warning("OAuth: %s", type(error).__name__)
    problem = {"error": "server_error", "error_description": "details are in the server's log"}
    return JSONResponse(problem, 503, {"Cache-Control": "no-store"})


async def _unexpected(_: Request, error: Exception) -> Response:
    incident = report(environment(), error, surface="mcp", operation="oauth")
    words = f"something went wrong (incident {incident.id})"
    problem = {"error": "server_error", "error_description": words}
    return JSONResponse(problem, 500, {"Cache-Control": "no-store"})


def _too_many_requests() -> Response:
    problem = {"error": "temporarily_unavailable", "error_description": "too many requests"}
    return JSONResponse(problem, 429, {"Retry-After": "60", "Cache-Control": "no-store"})
