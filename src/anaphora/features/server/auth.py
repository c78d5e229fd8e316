"""Authentication and authorization, before any route does its work: Host, Origin, token, namespace.

By default only this machine's own names are answered (against DNS rebinding), and no other site's
page. A token gives access to its namespaces only, and a refusal does not reveal whether a namespace
exists.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread

from anaphora.errors import InvalidInput
from anaphora.language.names import standing_form
from anaphora.store.threads.ids import check_id
from anaphora.store.tokens import Token, Tokens
from anaphora.surfaces.access import OWN, bearer, is_own
from anaphora.surfaces.rest.calls import RestCaller
from anaphora.surfaces.rest.options import ServerOptions
from anaphora.surfaces.rest.problems import Problem

NAMESPACE_HEADER: Final = "anaphora-namespace"
_DEFAULT: Final = "default"
_PAGE_KINDS = (".html", ".js", ".css", ".svg", ".png", ".ico", ".woff2", ".webmanifest")
# Folders and single routes with data. The page has files beside them, such as /metrics.js.
_DATA_FOLDERS = ("/v1/", "/v2/", "/conversations/", "/health/")
_DATA_ROUTES = frozenset({"/conversations", "/health", "/metrics", "/openapi.json"})
LIVE: Final = "/health/live"
"""Says only that the process answers, and needs no token: process supervisors have none."""

_HOST: Final = re.compile(r"(\[[0-9a-f:.%]*\]|[^\[\]:]*)(?::\d*)?")
_CHALLENGE: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="anaphora"'}


class Authenticator:
    """Admits callers, or refuses them."""

    def __init__(self, tokens: Tokens, options: ServerOptions) -> None:
        self._tokens = tokens
        self._options = options
        # Checking a token reads the database. It must neither block other requests nor wait behind
        # the calls of admitted callers.
        self._limiter = CapacityLimiter(4)

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Refuse a request by another host name, or from another site's page."""
        host = headers.get("host", "")
        name = host_of(host)
        is_allowed = name in self._options.names
        if not is_allowed and self._options.any_address:
            with suppress(ValueError):
                ipaddress.ip_address(name.strip("[]"))
                is_allowed = True
        if not is_allowed:
            raise Problem(421, "host", "this host name is not allowed (--allow-host)")
        origin = headers.get("origin")
        if origin is not None and not self.is_known_origin(origin, host):
            raise Problem(403, "origin", "this origin is not allowed (--allow-origin)")
        is_cross_site = headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        if is_cross_site and origin is None and headers.get("sec-fetch-mode") != "navigate":
            raise Problem(403, "origin", "other sites may not call this server")

    def is_known_origin(self, origin: str, host: str) -> bool:
        """Whether it is the server's own origin, or an allowed one."""
        if origin in self._options.origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()

    async def token_of(self, headers: Mapping[str, str]) -> Token | None:
        """The token of the request, or None. An invalid one is refused."""
        authorization = headers.get("authorization")
        if authorization is None:
            return None
        secret, token = bearer(authorization), None
        if secret is not None:
            if is_own(secret, self._options.own):
                return OWN
            token = await to_thread.run_sync(self._tokens.check, secret, limiter=self._limiter)
        if token is None:
            raise Problem(401, "token", "the token is unknown, revoked or expired", _CHALLENGE)
        return token

    def caller(
        self, token: Token | None, method: str, path: str, headers: Mapping[str, str]
    ) -> RestCaller:
        """The caller, if the token gives access to the namespace that the request names."""
        open_to_all = path == LIVE or is_page(method, path)
        if token is None and self._options.require_token and not open_to_all:
            raise Problem(401, "token", "send Authorization: Bearer <token>", _CHALLENGE)
        namespace = headers.get(NAMESPACE_HEADER)
        if namespace is not None:
            try:
                # Header values are decoded as Latin-1; ours are UTF-8.
                namespace = check_id(namespace.encode("latin-1").decode("utf-8"))
            except (UnicodeError, InvalidInput):
                reason = "the header Anaphora-Namespace has an invalid name"
                raise Problem(400, "namespace", reason) from None
        if token is not None and namespace is None and not token.opens(_DEFAULT):
            # The token lacks the default namespace: use the first that it has.
            namespace = token.namespaces[0]
        namespace = namespace or _DEFAULT
        if token is not None:
            namespace = standing_form(namespace, token.opens)
        if token is not None and not token.opens(namespace):
            raise Problem(403, "namespace", "this token has no access to that namespace")
        return RestCaller(namespace, token)


def host_of(header: str) -> str:
    """The host name in a Host header, without port, in lower case."""
    name = header.strip().lower()
    match = _HOST.fullmatch(name)
    # An unparsable value matches no allowed name.
    return name if match is None else match.group(1)


def is_page(method: str, path: str) -> bool:
    """Whether this requests a file of the page: public program text."""
    if method not in {"GET", "HEAD"} or path in _DATA_ROUTES or path.startswith(_DATA_FOLDERS):
        return False
    return path == "/" or path.endswith(_PAGE_KINDS)
