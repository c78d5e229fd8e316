"""Tokens: who may reach a home through its server, and which namespaces of it.

In: a name, namespaces, an end; or the secret that a request came with. Out: frozen `Token`s. The
secret is 256 random bits, given out once: truth keeps its SHA-256 alone. A token that was revoked,
here or by another process, opens nothing from that moment on: every check reads truth. It never
logs a secret.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.arguments import checked_moment, checks_arguments
from anaphora.errors import InvalidInput, NotFound, StoreError, Unreadable
from anaphora.store.codecs import DAMAGE, from_micros, parsed, readable, to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.threads.ids import check_id

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

EVERYTHING: Final = "*"
"""The scope that is every namespace."""
PREFIX: Final = "anaphora_"
"""What every secret begins with, so that people and scanners know one when they see it."""

_HOME: Final = "default"
# Among the scopes, where no namespace can have this name: what is no namespace is a right.
_MAY_INDEX: Final = "/projects"
_BYTES: Final = 32
_NAME_LIMIT: Final = 100
# Writing the time of every use would make every read a write.
_COARSE: Final = timedelta(hours=1)
Rows = list[tuple[Any, ...]]
_COLUMNS = (
    "token_id", "name", "scopes", "read_only", "created_at", "expires_at", "last_used",
    "revoked_at", "token_hash",
)  # fmt: skip
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM token WHERE namespace = :namespace "  # noqa: S608
_BY_HASH = _ALL + "AND token_hash = :token_hash"
_LIST = _ALL + "ORDER BY created_at, token_id"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. `namespaces` are those it opens; "*" stands for all of them.

    `may_index` lets it have folders of the server's machine read into those namespaces.
    `last_used` is right within an hour. `revoked_at` is set once it opens nothing any more.
    """

    id: str
    name: str
    namespaces: tuple[str, ...]
    read_only: bool
    created_at: datetime
    expires_at: datetime | None = None
    last_used: datetime | None = None
    revoked_at: datetime | None = None
    may_index: bool = False

    def opens(self, namespace: str) -> bool:
        """Whether its scope has this namespace."""
        return EVERYTHING in self.namespaces or namespace in self.namespaces

    def alive(self, now: datetime) -> bool:
        """Whether it is neither revoked nor past its end at `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made, with its `secret`: nobody can be shown it again."""

    token: Token
    secret: str


@checks_arguments
class Tokens:
    """The tokens of a home. `clock` gives aware times, `ids` new ids, `random(n)` n bytes."""

    def __init__(
        self,
        truth: Database,
        sealer: Sealer = CLEAR,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        random: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._truth = truth
        self._sealer = sealer
        self._clock = clock
        self._ids = ids
        self._random = random

    def create(
        self,
        name: str,
        *,
        namespaces: Iterable[str] = (_HOME,),
        read_only: bool = False,
        may_index: bool = False,
        expires_at: datetime | None = None,
    ) -> NewToken:
        """Make a token for these namespaces ("*": all). Raises `InvalidInput`, `StoreError`."""
        now = self._clock()
        if expires_at is not None:
            checked_moment("expires_at", expires_at)
        if read_only and may_index:
            raise InvalidInput(
                "may_index", may_index, "does not go with read_only: indexing writes"
            )
        token = Token(
            id=self._ids(),
            name=_checked_name(name),
            namespaces=_checked(namespaces),
            read_only=read_only,
            created_at=now,
            expires_at=expires_at,
            may_index=may_index,
        )
        if expires_at is not None and not token.alive(now):
            raise InvalidInput("expires_at", expires_at.isoformat(), "expected a time to come")
        secret = PREFIX + self._random(_BYTES).hex()
        self._insert(token, secret)
        return NewToken(token, secret)

    def list(self) -> tuple[Token, ...]:
        """Every token that was ever made, the oldest first."""
        return tuple(readable(self._rows(_LIST), self._token))

    def any(self) -> bool:
        """Whether any token opens anything now."""
        now = self._clock()
        return any(token.alive(now) for token in self.list())

    def revoke(self, which: str) -> Token:
        """Let a token, by id or name, open nothing any more. `NotFound` when there is none alive.

        `InvalidInput` when several that are alive have this name.
        """
        now = self._clock()
        alive = [token for token in self.list() if token.alive(now)]
        found = [t for t in alive if t.id == which] or [t for t in alive if t.name == which]
        if not found:
            raise NotFound("token", which)
        if len(found) > 1:
            raise InvalidInput("token", which, "several have this name: give the id of one")
        self._revoke(found[0].id, now)
        return found[0]

    def check(self, secret: str) -> Token | None:
        """The token behind a secret, while it is alive; None for anything else."""
        found = self._rows(_BY_HASH, token_hash=self._lookup(secret))
        token = next(readable(found[:1], self._token), None)
        now = self._clock()
        if token is None or not token.alive(now):
            return None
        if token.last_used is None or now - token.last_used >= _COARSE:
            self._note_use(token.id, now)
        return token

    def _note_use(self, token_id: str, now: datetime) -> None:
        try:
            self._set(token_id, last_used=to_micros(now))
        except StoreError as error:
            # A disk that cannot be written must not keep anybody from reading.
            _log.warning("the use of token %s was not noted: %s", token_id, error)

    def _insert(self, token: Token, secret: str) -> None:
        row = {
            "namespace": _HOME,
            "token_id": token.id,
            "name": token.name,
            "token_hash": _digest(secret),
            "scopes": json.dumps(_scopes(token), ensure_ascii=False),
            "read_only": int(token.read_only),
            "created_at": to_micros(token.created_at),
            "expires_at": to_micros(token.expires_at),
            "last_used": None,
            "revoked_at": None,
        }
        # Opening what is there refuses a home of another form before a row of this one is added.
        self.list()
        with self._truth.write(_HOME) as write:
            from anaphora.store.db.schema import token as table

            self._sealer.check()
            stored = self._sealer.seal_row("token", {**row, "seq": write.take()[0]})
            write.connection.execute(table.insert(), stored)

    def _revoke(self, token_id: str, now: datetime) -> None:
        # What a token may do is bound to its row: the row is sealed anew with it.
        row = next(row for row in self._rows(_LIST) if row[0] == token_id)
        opened = {**self._opened(row), "revoked_at": to_micros(now)}
        stored = self._sealer.seal_row("token", opened)
        self._set(token_id, **{name: stored[name] for name in ("name", "scopes", "revoked_at")})

    def _set(self, token_id: str, **values: Any) -> None:
        with self._truth.write(_HOME) as write:
            from sqlalchemy import update

            from anaphora.store.db.schema import token as table

            self._sealer.check()
            here = (table.c.namespace == _HOME) & (table.c.token_id == token_id)
            write.connection.execute(
                update(table).where(here).values(seq=write.take()[0], **values)
            )

    def _rows(self, statement: str, **parameters: str) -> Rows:
        self._sealer.check()
        return self._truth.rows(statement, {"namespace": _HOME, **parameters})

    def _opened(self, row: tuple[Any, ...]) -> dict[str, Any]:
        given = dict(zip(_COLUMNS, row, strict=True), namespace=_HOME)
        return self._sealer.open_row("token", given)

    def _token(self, row: tuple[Any, ...]) -> Token:
        opened = self._opened(row)
        try:
            return _token_of(opened)
        except DAMAGE as error:
            reason = f"it makes no sense ({error}) and opens nothing"
            raise Unreadable("token", str(opened["token_id"]), reason) from error

    def _lookup(self, secret: str) -> str:
        return self._sealer.lookup("token_hash", _HOME, _digest(secret))


def _token_of(opened: Mapping[str, Any]) -> Token:
    created = from_micros(opened["created_at"])
    assert created is not None
    scopes = parsed(opened["scopes"], list)
    return Token(
        id=opened["token_id"],
        name=opened["name"],
        namespaces=tuple(scope for scope in scopes if scope != _MAY_INDEX),
        read_only=bool(opened["read_only"]),
        created_at=created,
        expires_at=from_micros(opened["expires_at"]),
        last_used=from_micros(opened["last_used"]),
        revoked_at=from_micros(opened["revoked_at"]),
        may_index=_MAY_INDEX in scopes,
    )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _scopes(token: Token) -> tuple[str, ...]:
    return (*token.namespaces, _MAY_INDEX) if token.may_index else token.namespaces


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _NAME_LIMIT or not name.isprintable():
        raise InvalidInput("name", name, f"expected 1 to {_NAME_LIMIT} printable characters")
    return name


def _checked(namespaces: Iterable[str]) -> tuple[str, ...]:
    if isinstance(namespaces, str):
        raise InvalidInput("namespaces", namespaces, "expected a list of names, not one string")
    names = tuple(dict.fromkeys(namespaces))
    if not names:
        raise InvalidInput("namespaces", names, "expected one or more names")
    for name in names:
        if name != EVERYTHING:
            check_id(name)
    return names
