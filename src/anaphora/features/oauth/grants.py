"""OAuth: clients that registered themselves, and what the owner granted them.

A grant belongs to a token of the home (`store.tokens`), which says what it opens: revoking that
token ends the grant. A secret is `anaphora_<kind>_<id of the grant>_<256 random bits>`; of the
random part the SHA-256 is kept. A code counts once, a refresh token until the next one was given:
one that comes again was stolen, from the client or by it, and ends the grant.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from anaphora.errors import NotFound
from anaphora.store.codecs import DAMAGE
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.table_rows import TableRows, TableTransaction
from anaphora.store.tokens import PREFIX, Tokens
from anaphora.values.json_codec import from_plain, plain

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

SecretKind: TypeAlias = Literal["code", "access", "refresh"]
LIFETIMES: Final[Mapping[SecretKind, timedelta]] = {
    "code": timedelta(minutes=1),
    "access": timedelta(hours=1),
    # From the last use on: a client that comes every week stays.
    "refresh": timedelta(days=30),
}
MOST_CLIENTS: Final = 200
"""Clients that are kept; of those without a grant the oldest give way."""

_HOME: Final = "default"
_TABLE: Final = "oauth"
_CLIENT: Final = "client"
_GRANT: Final = "grant"
_BYTES: Final = 32
_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Secret:
    """What is kept of a secret: its SHA-256, and until when it counts."""

    sha256: str
    ends: datetime


@dataclass(frozen=True, slots=True)
class Grant:
    """What the owner granted a client: the token `token_id`, for one `resource`.

    `approved_by` is the token with which the owner approved it, None for a code on the terminal:
    where that is revoked, the grant ends. `challenge` is the client's of PKCE (S256).
    `access_scopes` are those of its access token: a client may ask for less.
    """

    id: str
    client_id: str
    token_id: str
    scopes: tuple[str, ...]
    resource: str
    redirect_uri: str
    redirect_uri_was_given: bool
    challenge: str
    approved_by: str | None = None
    access_scopes: tuple[str, ...] = ()
    code: Secret | None = None
    access: Secret | None = None
    refresh: Secret | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """What a client gets: shown once, kept nowhere."""

    grant: Grant
    access: str
    refresh: str


class Grants:
    """The clients and grants of a home.

    `clock` gives aware times, `random(n)` n bytes; `on_end` gets the token of a grant that ended.
    """

    def __init__(
        self,
        truth: Database,
        sealer: Sealer = CLEAR,
        *,
        clock: Callable[[], datetime],
        on_end: Callable[[str], object],
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._rows = TableRows(truth, _HOME, sealer)
        self._on_end = on_end
        self._clock = clock
        self._random = random

    def register(self, client_id: str, client: Mapping[str, Any]) -> None:
        """Keep a client. Beyond the limit the oldest ones without a grant are forgotten."""
        row = {"kind": _CLIENT, "item_id": client_id, "body": json.dumps(client)}
        with self._rows.change() as work:
            clients = work.find(_TABLE, {"kind": _CLIENT})
            if len(clients) >= MOST_CLIENTS:
                grants = _read_grants(work.find(_TABLE, {"kind": _GRANT}))
                granted_ids = {grant.client_id for grant in grants}
                ids = [client_row["item_id"] for client_row in clients]
                idle = [known_id for known_id in ids if known_id not in granted_ids]
                for idle_client in idle[: len(clients) - MOST_CLIENTS + 1]:
                    work.drop(_TABLE, {"kind": _CLIENT, "item_id": idle_client})
            work.put(_TABLE, [row])

    def client(self, client_id: str) -> Mapping[str, Any] | None:
        """What a client registered; None for one that is not known."""
        rows = self._rows.find(_TABLE, {"kind": _CLIENT, "item_id": client_id})
        try:
            client_fields = json.loads(rows[0]["body"]) if rows else None
        except ValueError:
            return None
        return client_fields if isinstance(client_fields, dict) else None

    def begin(self, grant: Grant) -> str:
        """Keep a new grant; the code with which its client fetches what it was granted."""
        code, stored_code = self._make_secret("code", grant.id)
        with self._rows.change() as work:
            _put(work, replace(grant, code=stored_code))
        return code

    def new_id(self) -> str:
        """An id for a new grant: 128 random bits, which are part of its secrets."""
        return self._random(_ID_BYTES).hex()

    def find(self, kind: SecretKind, secret: str) -> Grant | None:
        """The grant that a secret of this kind stands for now, or None.

        A code or a refresh token that counted once, and comes again, ends its grant.
        """
        grant_id, random = _split_secret(kind, secret)
        rows = self._rows.find(_TABLE, {"kind": _GRANT, "item_id": grant_id}) if grant_id else []
        grant = next(_read_grants(rows), None)
        if grant is None:
            return None
        if _is_valid(getattr(grant, kind), random, self._clock()):
            return grant
        if kind != "access" and not _matches(getattr(grant, kind), random):
            self.end(grant)
        return None

    def redeem(self, kind: SecretKind, secret: str, scopes: tuple[str, ...]) -> Issued | None:
        """A new pair of tokens for a code or a refresh token, which counts no more; None for none.

        Of two that come with the same at once, one gets something, and the other ends the grant.
        """
        grant_id, random = _split_secret(kind, secret)
        with self._rows.change() as work:
            rows = work.find(_TABLE, {"kind": _GRANT, "item_id": grant_id})
            grant = next(_read_grants(rows), None)
            if grant is None:
                return None
            is_valid = _is_valid(getattr(grant, kind), random, self._clock())
            if not is_valid:
                work.drop(_TABLE, {"kind": _GRANT, "item_id": grant_id})
            access, stored_access = self._make_secret("access", grant.id)
            refresh, stored_refresh = self._make_secret("refresh", grant.id)
            if is_valid:
                grant = replace(
                    grant,
                    code=None,
                    access=stored_access,
                    refresh=stored_refresh,
                    access_scopes=scopes,
                )
                _put(work, grant)
        if not is_valid:
            self._on_end(grant.token_id)
            return None
        return Issued(grant, access, refresh)

    def end(self, grant: Grant) -> None:
        """Let a grant open nothing any more, and its token neither."""
        with self._rows.change() as work:
            work.drop(_TABLE, {"kind": _GRANT, "item_id": grant.id})
        self._on_end(grant.token_id)

    def drop_tokens(self, token_ids: Collection[str]) -> None:
        """Drop the grants of deleted tokens, and the clients that have no other grant."""
        with self._rows.change() as work:
            grants = list(_read_grants(work.find(_TABLE, {"kind": _GRANT})))
            dropped_grants = [g for g in grants if {g.token_id, g.approved_by} & set(token_ids)]
            staying = {grant.client_id for grant in grants if grant not in dropped_grants}
            for grant in dropped_grants:
                work.drop(_TABLE, {"kind": _GRANT, "item_id": grant.id})
                if grant.client_id not in staying:
                    work.drop(_TABLE, {"kind": _CLIENT, "item_id": grant.client_id})

    def sweep(self, alive: Callable[[Grant], bool]) -> None:
        """Drop the grants that can open nothing any more: `alive` says whether their tokens do."""
        now = self._clock()
        for grant in _read_grants(self._rows.find(_TABLE, {"kind": _GRANT})):
            grant_secrets = (grant.code, grant.access, grant.refresh)
            if not alive(grant) or not any(
                grant_secret is not None and now < grant_secret.ends
                for grant_secret in grant_secrets
            ):
                self.end(grant)

    def _make_secret(self, kind: SecretKind, grant_id: str) -> tuple[str, Secret]:
        random = self._random(_BYTES).hex()
        stored_secret = Secret(_digest(random), self._clock() + LIFETIMES[kind])
        return f"{PREFIX}{kind}_{grant_id}_{random}", stored_secret


def _split_secret(kind: SecretKind, secret: str) -> tuple[str, str]:
    """The id of the grant and the random part of a secret; blank where it is of another kind."""
    head = f"{PREFIX}{kind}_"
    grant_id, _, random = secret.removeprefix(head).partition("_")
    is_valid = secret.startswith(head) and len(grant_id) == 2 * _ID_BYTES and grant_id.isalnum()
    return (grant_id, random) if is_valid and secret.isascii() else ("", "")


def _matches(stored: Secret | None, random: str) -> bool:
    return stored is not None and compare_digest(stored.sha256, _digest(random))


def _is_valid(stored: Secret | None, random: str, now: datetime) -> bool:
    return stored is not None and _matches(stored, random) and now < stored.ends


def _digest(random: str) -> str:
    return hashlib.sha256(random.encode()).hexdigest()


def _put(work: TableTransaction, grant: Grant) -> None:
    body = {own_field.name: getattr(grant, own_field.name) for own_field in fields(Grant)}
    row = {"kind": _GRANT, "item_id": grant.id, "body": json.dumps(plain(body))}
    work.put(_TABLE, [row])


def _read_grants(rows: list[dict[str, Any]]) -> Iterator[Grant]:
    """The grants of rows; one that makes no sense opens nothing."""
    for row in rows:
        try:
            yield from_plain(Grant, json.loads(row["body"]))
        except DAMAGE:
            continue


def grants_of(tokens: Tokens) -> Grants:
    """The clients and grants of a home, each grant with a token of these."""

    def end(token_id: str) -> None:
        # It may have been revoked before.
        with suppress(NotFound):
            tokens.revoke(token_id)

    return Grants(tokens.truth, tokens.sealer, clock=tokens.clock, on_end=end, random=tokens.random)
