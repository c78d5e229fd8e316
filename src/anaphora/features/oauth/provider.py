"""Codes and tokens for clients: implements the SDK's provider on the grants of a home.

Clients are public: each proves by PKCE (S256) that it started the flow that it completes. A secret
issued to anyone who registers would prove nothing, so none is issued.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, TextIO
from urllib.parse import urlsplit

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError

from anaphora.features.oauth.consent import AccessRequest, Consents
from anaphora.features.oauth.grants import LIFETIMES, Grant, SecretKind, grants_of
from anaphora.surfaces.mcp_server.address import SCOPES, PublicAddress
from anaphora.text.display import one_line

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.api.workers import Workers
    from anaphora.store.tokens import Token, Tokens

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MOST_URIS: Final = 10
_LONGEST: Final = 2_000
_LONGEST_CLIENT: Final = 16_000
# Schemes without a dot that known desktop programs have registered.
_KNOWN_SCHEMES: Final = frozenset(("cursor", "vscode", "vscode-insiders", "windsurf", "zed"))
TOKEN_KINDS: Final[tuple[SecretKind, ...]] = ("access", "refresh")
_ENDED: Final = "it is not known, was used before, or has ended"


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The authorization server of one home. `told` gets a line for each pending request."""

    def __init__(
        self,
        memory: Callable[[], Memory],
        workers: Workers,
        address: PublicAddress,
        consents: Consents,
        told: TextIO | None = None,
    ) -> None:
        self._memory = memory
        self._workers = workers
        self._address = address
        self._consents = consents
        self._told = told

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        """A registered client."""
        registration = await self._workers.do(lambda: grants_of(self._tokens()).client(client_id))
        try:
            return (
                None
                if registration is None
                else OAuthClientInformationFull.model_validate(registration)
            )
        except ValidationError:
            return None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Register a client if its redirect addresses are acceptable.

        Allowed are its own (RFC 8252): https, http to the same machine, and private schemes, with
        a dot or known.
        """
        for uri in map(str, client_info.redirect_uris or ()):
            parts: Any = urlsplit(uri)
            is_allowed = parts.fragment == "" and parts.username is None and len(uri) <= _LONGEST
            if parts.scheme == "http":
                host = parts.hostname or ""
                try:
                    is_allowed = is_allowed and ip_address(host).is_loopback
                except ValueError:
                    is_allowed = is_allowed and host == "localhost"
            elif parts.scheme == "https":
                is_allowed = is_allowed and bool(parts.hostname)
            else:
                is_allowed = is_allowed and ("." in parts.scheme or parts.scheme in _KNOWN_SCHEMES)
            if not is_allowed:
                reason = f"{one_line(uri, 200)}: expected https, or http to this machine"
                raise RegistrationError("invalid_redirect_uri", reason)
        if len(client_info.redirect_uris or ()) > _MOST_URIS:
            raise RegistrationError("invalid_redirect_uri", f"at most {_MOST_URIS} are kept")
        # The answer states what was registered instead of what was requested (RFC 7591, 3.2.1).
        client_info.token_endpoint_auth_method = "none"  # noqa: S105 - a method
        client_info.client_secret = client_info.client_secret_expires_at = None
        client_info.scope = " ".join(SCOPES)
        metadata = client_info.model_dump(mode="json", exclude_none=True)
        if len(str(metadata)) > _LONGEST_CLIENT:
            raise RegistrationError("invalid_client_metadata", "it is too long to be kept")
        await self._workers.do(
            lambda: grants_of(self._tokens()).register(str(client_info.client_id), metadata)
        )

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        """The address of the consent page."""
        if params.resource is not None and not self._address.is_resource(params.resource):
            raise AuthorizeError("invalid_target", f"expected {self._address.resource}")
        if not _CHALLENGE.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "code_challenge: expected one of S256")
        name = one_line(client.client_name or "a client without a name", 100)
        request = self._consents.begin(
            AccessRequest(
                client.client_id,
                name,
                str(params.redirect_uri),
                params.redirect_uri_provided_explicitly,
                tuple(params.scopes or SCOPES),
                params.code_challenge,
                params.state,
            )
        )
        to = one_line(urlsplit(request.asked.redirect_uri).netloc or "a program of this machine")
        terminal = self._told or sys.stderr
        terminal.write(
            f"anaphora: {name} ({to}) asks to connect; to allow it, type "
            f"{request.code[:4]}-{request.code[4:]} on the page (10 minutes)\n"
        )
        terminal.flush()
        return f"{self._address.origin}/approve?request={request.id}"

    async def grant(
        self, asked: AccessRequest, scopes: tuple[str, ...], approver: Token | None
    ) -> str:
        """A code for a client that the owner has granted these scopes."""

        def granted() -> str:
            tokens = self._tokens()
            grants = grants_of(tokens)
            grants.sweep(lambda grant: self._alive(tokens, grant) is not None)
            token = tokens.create(
                f"{asked.client_name[:80].strip()} (OAuth)",
                namespaces=(self._memory().namespace,),
                read_only="write" not in scopes,
                expires_at=None if approver is None else approver.expires_at,
            ).token
            return grants.begin(
                Grant(
                    id=grants.new_id(),
                    client_id=asked.client_id,
                    token_id=token.id,
                    scopes=scopes,
                    resource=self._address.resource,
                    redirect_uri=asked.redirect_uri,
                    redirect_uri_was_given=asked.redirect_uri_was_given,
                    challenge=asked.challenge,
                    approved_by=None if approver is None else approver.id,
                )
            )

        return await self._workers.do(granted)

    async def approver(self, secret: str) -> Token | None:
        """The token with which the owner approves, if it gives access to the namespace."""

        def checked() -> Token | None:
            token = self._tokens().check(secret)
            return token if token is not None and token.opens(self._memory().namespace) else None

        return await self._workers.do(checked)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """The code while it is valid, if it was issued to this client."""
        grant = await self._find_grant("code", authorization_code, client)
        if grant is None:
            return None
        return AuthorizationCode(
            code=authorization_code,
            scopes=list(grant.scopes),
            # The home's clock has already checked that the code has not expired.
            expires_at=time.time() + LIFETIMES["code"].total_seconds(),
            client_id=grant.client_id,
            code_challenge=grant.challenge,
            redirect_uri=AnyUrl(grant.redirect_uri),
            redirect_uri_provided_explicitly=grant.redirect_uri_was_given,
            resource=grant.resource,
        )

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        """The first pair of tokens."""
        scopes = tuple(authorization_code.scopes)
        return await self._redeem("code", authorization_code.code, scopes)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        """The refresh token while it is valid, if it was issued to this client."""
        grant = await self._find_grant("refresh", refresh_token, client)
        if grant is None:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=grant.client_id,
            scopes=list(grant.scopes),
            resource=grant.resource,
        )

    async def exchange_refresh_token(
        self,
        client: OAuthClientInformationFull,
        refresh_token: RefreshToken,
        scopes: list[str],
    ) -> OAuthToken:
        """The next pair; the previous one becomes invalid."""
        return await self._redeem("refresh", refresh_token.token, tuple(scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        """The access token, while it is valid."""
        grant = await self._find_grant("access", token, None)
        if grant is None:
            return None
        return AccessToken(
            token=token,
            client_id=grant.client_id,
            scopes=list(grant.access_scopes),
            resource=grant.resource,
        )

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End the grant of a loaded token."""
        await self.revoke(None, token.token)

    async def revoke(self, client: OAuthClientInformationFull | None, secret: str) -> None:
        """End the grant of this client that the secret belongs to, of whichever kind."""
        for kind in TOKEN_KINDS:
            grant = await self._find_grant(kind, secret, client)
            if grant is not None:
                await self._workers.do(self._end_grant, grant)
                return

    def _end_grant(self, grant: Grant) -> None:
        grants_of(self._tokens()).end(grant)

    def opened_by(self, secret: str) -> Token | None:
        """The token behind an access token of this server, if current. Called in a thread."""
        tokens = self._tokens()
        grant = grants_of(tokens).find("access", secret)
        if grant is None or grant.resource != self._address.resource:
            return None
        token = self._alive(tokens, grant, note=True)
        if token is None or "write" in grant.access_scopes:
            return token
        return replace(token, read_only=True)

    async def _find_grant(
        self, kind: SecretKind, secret: str, client: OAuthClientInformationFull | None
    ) -> Grant | None:
        def found() -> Grant | None:
            tokens = self._tokens()
            grant = grants_of(tokens).find(kind, secret)
            if grant is None or self._alive(tokens, grant) is None:
                return None
            return grant if client is None or grant.client_id == client.client_id else None

        return await self._workers.do(found)

    async def _redeem(self, kind: SecretKind, secret: str, scopes: tuple[str, ...]) -> OAuthToken:
        issued_tokens = await self._workers.do(
            lambda: grants_of(self._tokens()).redeem(kind, secret, scopes)
        )
        if issued_tokens is None:
            raise TokenError("invalid_grant", _ENDED)
        return OAuthToken(
            access_token=issued_tokens.access,
            refresh_token=issued_tokens.refresh,
            expires_in=int(LIFETIMES["access"].total_seconds()),
            scope=" ".join(scopes),
        )

    def _alive(self, tokens: Tokens, grant: Grant, *, note: bool = False) -> Token | None:
        """The token of a grant while it and the token that approved it are valid."""
        if grant.approved_by is not None and tokens.use(grant.approved_by, note=False) is None:
            return None
        return tokens.use(grant.token_id, note=note)

    def _tokens(self) -> Tokens:
        return self._memory().tokens
