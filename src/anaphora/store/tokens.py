"""Tokens: access to a home through its server, and to which of its namespaces.

The secret is 256 random bits, given out once: the database keeps its SHA-256 alone. A token that
was revoked, here or by another process, opens nothing from that moment on: every check reads the
database. It never logs a secret.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from anaphora.calls.arguments import checked
from anaphora.calls.moments import checked_moment
from anaphora.errors import InvalidInput, NotFound, StoreError
from anaphora.language.names import composed
from anaphora.store.codecs import parsed, readable, to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.tables import TOKEN
from anaphora.store.extensions import DROPPED_TOKENS
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction
from anaphora.store.threads.ids import check_id
from anaphora.values.namespaces import NamespaceAccess

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

__all__ = ["EVERYTHING", "PREFIX", "NewToken", "Token", "Tokens"]

PREFIX: Final = "anaphora_"
"""What every secret begins with, so that people and scanners know one when they see it."""
EVERYTHING: Final = "*"
"""The scope that is every namespace."""

_HOME: Final = "default"
# Among the scopes, where no namespace can have this name: what is no namespace is a right.
_MAY_INDEX: Final = "/projects"
_PERSON: Final = "/person "
_BYTES: Final = 32
_NAME_LIMIT: Final = 100
# Writing the time of every use would make every read a write.
_COARSE: Final = timedelta(hours=1)
_ALL = TOKEN.select()
_BY_HASH = _ALL + "AND token_hash = :token_hash"
_BY_ID = _ALL + "AND token_id = :token_id"
_LIST = _ALL + "ORDER BY created_at, token_id"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. `namespaces` are those it opens; "*" stands for all of them.

    `may_index` lets it have folders of the server's machine read into those namespaces. `person` is
    the name of the person that it was made for: what is written with it says so.
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
    person: str = ""

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


_MAPPING: Final = RowMapping(
    TOKEN,
    Token,
    named={"id": "token_id"},
    read={
        # No namespace begins with "/".
        "namespaces": (
            "scopes",
            lambda stored: tuple(s for s in parsed(stored, list) if not s.startswith("/")),
        ),
        "may_index": ("scopes", lambda stored: _MAY_INDEX in parsed(stored, list)),
        "person": (
            "scopes",
            lambda stored: next(
                (scope for scope in parsed(stored, list) if scope.startswith(_PERSON)), ""
            ).removeprefix(_PERSON),
        ),
    },
)


class _TokenTransaction(NamespaceTransaction):
    """What one write transaction does to tokens."""

    def add(self, token: Token, secret: str) -> None:
        scopes = json.dumps(_scopes(token), ensure_ascii=False)
        self._insert(TOKEN, [_MAPPING.row(token, scopes=scopes, token_hash=_digest(secret))])

    def revoke(self, token_id: str, at: datetime) -> None:
        # What a token may do is bound to its row: the row is sealed anew with it.
        (row,) = self.find_rows(TOKEN, token_id=token_id)
        self._update(TOKEN, [{**row, "revoked_at": to_micros(at)}])

    def narrow(self, token: Token) -> None:
        """Let a token open the namespaces that it has here; one that has none is deleted."""
        if not token.namespaces:
            self._delete(TOKEN, token_id=token.id)
            return
        (row,) = self.find_rows(TOKEN, token_id=token.id)
        scopes = json.dumps(_scopes(token), ensure_ascii=False)
        self._update(TOKEN, [{**row, "scopes": scopes}])

    def note_use(self, token_id: str, at: datetime) -> None:
        changed_cells = {"seq": self.write.take()[0], "last_used": to_micros(at)}
        self._set(TOKEN, changed_cells, token_id=token_id)


class Tokens(NamespaceReader):
    """The tokens of a home. `clock` gives aware times, `ids` new ids, `random(n)` n bytes.

    `standing` gives the form in which a namespace stands that is called so.
    """

    def __init__(
        self,
        truth: Database,
        sealer: Sealer = CLEAR,
        *,
        clock: Callable[[], datetime],
        ids: Callable[[], str],
        random: Callable[[int], bytes] = secrets.token_bytes,
        standing: Callable[[str], str] = composed,
    ) -> None:
        super().__init__(truth, _HOME, sealer)
        self._standing = standing
        self._clock = clock
        self._ids = ids
        self._random = random

    @checked
    def create(
        self,
        name: str,
        *,
        namespaces: Iterable[str] = (_HOME,),
        read_only: bool = False,
        may_index: bool = False,
        expires_at: datetime | None = None,
        person: str = "",
    ) -> NewToken:
        """Make a token for these namespaces ("*": all). Raises `InvalidInput`, `StoreError`.

        `person` names the person that it is for: what is written with it has that name in its
        sources.
        """
        now = self._clock()
        if expires_at is not None:
            checked_moment("expires_at", expires_at)
        if read_only and may_index:
            raise InvalidInput(
                "may_index", may_index, "cannot be combined with read_only: indexing writes"
            )
        token = Token(
            id=self._ids(),
            name=_checked_name(name),
            namespaces=tuple(dict.fromkeys(map(self._standing, _checked_namespaces(namespaces)))),
            read_only=read_only,
            created_at=now,
            expires_at=expires_at,
            may_index=may_index,
            person=_checked_name(person, "person") if person else "",
        )
        if expires_at is not None and not token.alive(now):
            raise InvalidInput(
                "expires_at", expires_at.isoformat(), "expected a time in the future"
            )
        secret = PREFIX + self._random(_BYTES).hex()
        with self._changing() as work:
            work.add(token, secret)
        return NewToken(token, secret)

    def list(self) -> tuple[Token, ...]:
        """Every token that was ever made, the oldest first."""
        return tuple(readable(self._found(TOKEN, _LIST), _MAPPING.value))

    @checked
    def readers_of(self, namespace: str) -> tuple[NamespaceAccess, ...]:
        """Each person or program whose token opens a namespace now, in the order of their names.

        The user who runs the server can read it, too, and is not among them.
        """
        now, namespace = self._clock(), self._standing(check_id(namespace))
        readers = (
            NamespaceAccess(
                token.person or token.name,
                token.name,
                not token.read_only,
                EVERYTHING in token.namespaces,
                token.last_used,
                token.expires_at,
            )
            for token in self.list()
            if token.opens(namespace) and token.alive(now)
        )
        return tuple(sorted(readers, key=lambda reader: reader.name.casefold()))

    def any(self) -> bool:
        """Whether any token opens anything now."""
        now = self._clock()
        return any(token.alive(now) for token in self.list())

    @checked
    def revoke(self, which: str) -> Token:
        """Let a token, by id or name, open nothing any more. `NotFound` when there is none alive.

        `InvalidInput` when several that are alive have this name.
        """
        now = self._clock()
        alive = [token for token in self.list() if token.alive(now)]
        matches = [t for t in alive if t.id == which] or [t for t in alive if t.name == which]
        if not matches:
            raise NotFound("token", which)
        if len(matches) > 1:
            raise InvalidInput("token", which, "several tokens have this name: give an id")
        with self._changing() as work:
            work.revoke(matches[0].id, now)
        return matches[0]

    @checked
    def close_namespace(self, namespace: str) -> int:
        """Let no token open this namespace by its name; how many opened it alone, and are gone.

        With them goes what features have bound to them.
        """
        namespace_tokens = [token for token in self.list() if namespace in token.namespaces]
        deleted_ids = [
            token.id for token in namespace_tokens if set(token.namespaces) == {namespace}
        ]
        with self._changing() as work:
            for token in namespace_tokens:
                remaining = tuple(
                    other_namespace
                    for other_namespace in token.namespaces
                    if other_namespace != namespace
                )
                work.narrow(replace(token, namespaces=remaining))
        if deleted_ids:
            for forget_tokens in DROPPED_TOKENS:
                forget_tokens(self, deleted_ids)
        return len(deleted_ids)

    @property
    def clock(self) -> Callable[[], datetime]:
        """The present, aware."""
        return self._clock

    @property
    def random(self) -> Callable[[int], bytes]:
        """Random bytes."""
        return self._random

    @checked
    def use(self, token_id: str, *, note: bool = True) -> Token | None:
        """The token of this id, while it is alive; with `note` its use now is noted."""
        rows = self._found(TOKEN, _BY_ID, token_id=token_id)
        token = next(readable(rows[:1], _MAPPING.value), None)
        if not note:
            return token if token is not None and token.alive(self._clock()) else None
        return self._used(token)

    @checked
    def check(self, secret: str) -> Token | None:
        """The token behind a secret, while it is alive; None for anything else."""
        stored_hash = self._lookup("token_hash", _digest(secret))
        rows = self._found(TOKEN, _BY_HASH, token_hash=stored_hash)
        return self._used(next(readable(rows[:1], _MAPPING.value), None))

    def _used(self, token: Token | None) -> Token | None:
        now = self._clock()
        if token is None or not token.alive(now):
            return None
        if token.last_used is None or now - token.last_used >= _COARSE:
            try:
                with self._changing() as work:
                    work.note_use(token.id, now)
            except StoreError as error:
                # Reading must go on with a disk that cannot be written.
                _log.warning("the use of token %s was not noted: %s", token.id, error)
        return token

    @contextmanager
    def _changing(self) -> Iterator[_TokenTransaction]:
        with self._writing() as write:
            yield _TokenTransaction(write, self.sealer)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _scopes(token: Token) -> tuple[str, ...]:
    rights = (_MAY_INDEX,) if token.may_index else ()
    person_scopes = (_PERSON + token.person,) if token.person else ()
    return (*token.namespaces, *rights, *person_scopes)


def _checked_name(name: str, what: str = "name") -> str:
    name = name.strip()
    if not name or len(name) > _NAME_LIMIT or not name.isprintable():
        raise InvalidInput(what, name, f"expected 1 to {_NAME_LIMIT} printable characters")
    return name


def _checked_namespaces(namespaces: Iterable[str]) -> tuple[str, ...]:
    if isinstance(namespaces, str):
        raise InvalidInput("namespaces", namespaces, "expected a list of names, not one string")
    names = tuple(dict.fromkeys(namespaces))
    if not names:
        raise InvalidInput("namespaces", names, "expected one or more names")
    for name in names:
        if name != EVERYTHING:
            check_id(name)
    return names
