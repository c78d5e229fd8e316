"""Who is let in: Host, Origin, token and namespace, before any route does its work.

By default only this machine's own names are answered (a page elsewhere must not reach us by
rebinding its name) and no other site's page. A token opens its namespaces alone, and a refusal does
not tell whether a namespace exists.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers

from anaphora.core.names import standing_form
from anaphora.errors import InvalidInput
from anaphora.store.threads.ids import check_id
from anaphora.store.tokens import Token, Tokens
from anaphora.surfaces.access import OWN, bearer, is_own
from anaphora.surfaces.rest.calls import Caller
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem

NAMESPACE_HEADER: Final = "anaphora-namespace"
_DEFAULT: Final = "default"
_PAGE_KINDS = (".html", ".js", ".css", ".svg", ".png", ".ico", ".woff2", ".webmanifest")
# Folders of data, and single routes of data: the page has files beside them, such as /metrics.js.
_DATA_FOLDERS = ("/v1/", "/v2/", "/conversations/", "/health/")
_DATA_ROUTES = frozenset({"/conversations", "/health", "/metrics", "/openapi.json"})
LIVE: Final = "/health/live"
"""Says that the process answers, and nothing else: who starts it again has no token."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.%]*\]|[^\[\]:]*)(?::\d*)?")
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
            raise Problem(421, "host", "this host name is not allowed (--allow-host)")
        origin = headers.get("origin")
        if origin is not None and not self.is_known_origin(origin, host):
            raise Problem(403, "origin", "this origin is not allowed (--allow-origin)")
        away = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        if away and origin is None and headers.get("sec-fetch-mode") != "navigate":
            raise Problem(403, "origin", "other sites may not call this server")

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
            raise Problem(401, "token", "the token is unknown, revoked or expired", _CHALLENGE)
        return token

    def caller(self, token: Token | None, method: str, path: str, headers: Headers) -> Caller:
        """The caller, if the token opens the namespace that the request names."""
        open_to_all = path == LIVE or is_page(method, path)
        if token is None and self._options.require_token and not open_to_all:
            raise Problem(401, "token", "send Authorization: Bearer <token>", _CHALLENGE)
        namespace = _namespace(headers)
        if token is not None and namespace is None and not token.opens(_DEFAULT):
            # Not everybody has the default one: without a wish it is the first of those they have.
            namespace = token.namespaces[0]
        namespace = namespace or _DEFAULT
        if token is not None:
            namespace = standing_form(namespace, token.opens)
        if token is not None and not token.opens(namespace):
            raise Problem(403, "namespace", "this token has no access to that namespace")
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
    match = _HOST.fullmatch(name)
    # What is no name with a port is the name of nothing here.
    return name if match is None else match.group(1)


def is_page(method: str, path: str) -> bool:
    """Whether this asks for a file of the page: program text, the same for everybody."""
    if method not in {"GET", "HEAD"} or path in _DATA_ROUTES or path.startswith(_DATA_FOLDERS):
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
        reason = "the header Anaphora-Namespace has an invalid name"
        raise Problem(400, "namespace", reason) from None
