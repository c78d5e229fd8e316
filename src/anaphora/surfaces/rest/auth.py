"""Who is let in: Host, Origin, token, namespace and rights, before any route does its work.

By default only this machine's own names are answered (a page elsewhere must not reach us by
rebinding its name) and no other site's page. A token opens its namespaces alone, and a refusal does
not tell whether a namespace exists. GET reads by its nature; every other route that only reads has
to be marked (`reads_only`), so that a new one cannot be forgotten.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.routing import APIRoute
from starlette.datastructures import Headers

from anaphora.errors import InvalidInput
from anaphora.store.threads.ids import check_id
from anaphora.store.tokens import Token, Tokens
from anaphora.surfaces.access import OWN, bearer, is_own, may
from anaphora.surfaces.rest.calls import READS, Caller, caller_of, reads
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.schemas import NoQuery

EndpointT = TypeVar("EndpointT", bound=Callable[..., Any])

NAMESPACE_HEADER: Final = "anaphora-namespace"
_DEFAULT: Final = "default"
_PAGE_KINDS = (".html", ".js", ".css", ".svg", ".png", ".ico", ".woff2", ".webmanifest")
_DATA = ("/v1/", "/conversations", "/health", "/metrics", "/openapi")
_CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="anaphora"'}


class Authenticator:
    """Lets callers in, or refuses them."""

    def __init__(self, tokens: Tokens, options: ServerOptions) -> None:
        self._tokens = tokens
        self._options = options
        # Checking a token reads the database, which must not hold up other requests; and it must
        # not wait behind the calls of those who were let in already.
        self._limiter = CapacityLimiter(4)

    def check_place(self, headers: Headers) -> None:
        """Refuse a request to another name, or from another site's page."""
        host = headers.get("host", "")
        if not self._is_ours(host_of(host)):
            raise Problem(421, "host", "this server does not answer to that name")
        origin = headers.get("origin")
        if origin is not None and not self.is_known_origin(origin, host):
            raise Problem(403, "origin", "pages of that site may not call this server")
        away = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        if away and origin is None and headers.get("sec-fetch-mode") != "navigate":
            raise Problem(403, "origin", "pages of other sites may not call this server")

    def is_known_origin(self, origin: str, host: str) -> bool:
        """Whether it is the server's own origin, or one that was allowed."""
        if origin in self._options.origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()

    async def token_of(self, headers: Headers) -> Token | None:
        """The token that the request came with; None without one. A bad one is refused."""
        given = headers.get("authorization")
        if given is None:
            return None
        secret, token = bearer(given), None
        if secret is not None:
            if is_own(secret, self._options.own):
                return OWN
            token = await to_thread.run_sync(self._tokens.check, secret, limiter=self._limiter)
        if token is None:
            raise Problem(401, "token", "this token opens nothing", _CHALLENGE)
        return token

    def caller(self, token: Token | None, method: str, path: str, headers: Headers) -> Caller:
        """The caller, if the token opens the namespace that the request names."""
        if token is None and self._options.require_token and not is_page(method, path):
            raise Problem(401, "token", "send Authorization: Bearer <token>", _CHALLENGE)
        namespace = _namespace(headers)
        if token is not None and namespace is None and not token.opens(_DEFAULT):
            # Not everybody has the default one: without a wish it is the first of those they have.
            namespace = token.namespaces[0]
        namespace = namespace or _DEFAULT
        if token is not None and not token.opens(namespace):
            raise Problem(403, "namespace", "this token does not open that namespace")
        return Caller(namespace, token)

    def _is_ours(self, name: str) -> bool:
        if name in self._options.names:
            return True
        if not self._options.any_address:
            return False
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def host_of(header: str) -> str:
    """The name in a Host header, without its port, lower case."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def is_page(method: str, path: str) -> bool:
    """Whether this asks for a file of the page: program text, the same for everybody."""
    if method not in {"GET", "HEAD"} or path.startswith(_DATA):
        return False
    return path == "/" or path.endswith(_PAGE_KINDS)


def _namespace(headers: Headers) -> str | None:
    given = headers.get(NAMESPACE_HEADER)
    if given is None:
        return None
    try:
        # Header values arrive as Latin-1, whatever was meant.
        return check_id(given.encode("latin-1").decode("utf-8"))
    except (UnicodeError, InvalidInput):
        reason = "the header Anaphora-Namespace names no namespace"
        raise Problem(400, "namespace", reason) from None


def reads_only(endpoint: EndpointT) -> EndpointT:
    """Mark an endpoint that answers a question in the body of a POST."""
    setattr(endpoint, READS, True)
    return endpoint


async def permitted(request: Request) -> None:
    """Refuse a read-only token what would change something."""
    changes = not reads(request.scope["route"], request.method)
    if changes and not may(caller_of(request).token, "change"):
        raise Problem(403, "read_only", "this token only reads")


async def no_query(_: Annotated[NoQuery, Query()]) -> None:
    """Refuse every parameter in the URL."""


class _ClosedRoute(APIRoute):
    """A route that refuses parameters in the URL, unless it has a model of them: `query`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        if "query" not in signature(endpoint).parameters:
            given["dependencies"] = [*(given.get("dependencies") or ()), Depends(no_query)]
        super().__init__(path, endpoint, **given)


def lane_router(lane: str, prefix: str = "/v1", *, closed: bool = True) -> APIRouter:
    """An empty router whose routes refuse what a read-only token may not do.

    Unless `closed` is False, they refuse parameters in the URL that they do not know, too.
    """
    return APIRouter(
        prefix=prefix,
        tags=[lane],
        dependencies=[Depends(permitted)],
        route_class=_ClosedRoute if closed else APIRoute,
    )
