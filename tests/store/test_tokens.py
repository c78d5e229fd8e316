"""Tokens: the secret is shown once, opens its namespaces alone, and nothing once revoked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Clock
from tests.sqlite_driver import dbapi2

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound

Tokens = Any
OpenTokens = Callable[[], Tokens]
PREFIX = "anaphora_"


@pytest.fixture
def open_tokens(database: Path | str, tmp_path: Path, clock: Clock) -> Iterator[OpenTokens]:
    """The tokens of the test's home, each time as another program would have them."""
    url = database if isinstance(database, str) else None
    with ExitStack() as opened:
        yield (
            lambda: (
                opened.enter_context(
                    Memory.open(tmp_path / "home", database=url, clock=clock, embedder="hashing")
                ).tokens
            )
        )


@pytest.fixture
def tokens(open_tokens: OpenTokens) -> Tokens:
    return open_tokens()


@pytest.mark.promise("tokens.scoped")
def test_a_token_opens_its_namespaces_alone(tokens: Tokens, open_tokens: OpenTokens) -> None:
    """A secret gives the token it was made with, from any process, and that its scope alone."""
    made = tokens.create("agent", namespaces=("work", "play", "work"), read_only=True)
    assert made.secret.startswith(PREFIX)
    found = open_tokens().check(made.secret)
    assert found is not None
    assert (found.id, found.name) == (made.token.id, "agent")
    assert found.namespaces == ("work", "play")
    assert found.read_only
    assert [found.opens(name) for name in ("work", "play", "default", "*")] == [
        True, True, False, False,
    ]  # fmt: skip
    everything = tokens.create("all", namespaces=("*",)).token
    assert everything.opens("anything")
    for wrong in ("", "x", made.secret[:-1], made.secret + "0", made.secret.upper(), "\ud800\x00"):
        assert tokens.check(wrong) is None


@pytest.mark.promise("tokens.scoped")
def test_a_token_of_before_may_not_index(tokens: Tokens, open_tokens: OpenTokens) -> None:
    """The right to index is kept with a token, and no token has it that was made without."""
    tokens.create("before", namespaces=("work",))
    tokens.create("indexer", namespaces=("work", "*"), may_index=True, person="Rafi Ó")
    again = open_tokens().list()
    assert [(one.may_index, one.namespaces) for one in again] == [
        (False, ("work",)),
        (True, ("work", "*")),
    ]
    assert not again[0].opens("/projects")
    assert [one.person for one in again] == ["", "Rafi Ó"]


@pytest.mark.promise("tokens.people")
def test_who_can_read_a_namespace(tokens: Tokens, clock: Clock) -> None:
    """Those whose tokens open it now, by the names of people; one that ended or was revoked no."""
    later = clock.now + timedelta(days=1)
    tokens.create("laptop", namespaces=("work",), person="Mara")
    tokens.create("dashboard", namespaces=("*",), read_only=True, expires_at=later)
    tokens.create("elsewhere", namespaces=("play",), person="Sam")
    tokens.revoke(tokens.create("old", namespaces=("work",), person="Kim").token.id)
    found = tokens.readers_of("work")
    assert [(one.name, one.token, one.writes, one.everything) for one in found] == [
        ("dashboard", "dashboard", False, True),
        ("Mara", "laptop", True, False),
    ]
    with pytest.raises(InvalidInput, match="person"):
        tokens.create("x", person="a\nb")


@pytest.mark.promise("tokens.revoked")
def test_a_revoked_token_opens_nothing_anywhere(open_tokens: OpenTokens, clock: Clock) -> None:
    """What one process revokes another one refuses with its next check."""
    here, there = open_tokens(), open_tokens()
    made = here.create("agent")
    assert there.check(made.secret) is not None
    clock.advance(minutes=1)
    assert here.revoke("agent").id == made.token.id
    assert there.check(made.secret) is None
    assert [token.revoked_at for token in there.list()] == [clock.now]
    assert not there.any()
    with pytest.raises(NotFound):
        there.revoke("agent")


def test_a_name_that_several_have_needs_an_id(tokens: Tokens) -> None:
    """Revoking never guesses which of two tokens was meant."""
    first, second = tokens.create("agent"), tokens.create("agent")
    with pytest.raises(InvalidInput, match="id"):
        tokens.revoke("agent")
    tokens.revoke(first.token.id)
    assert tokens.revoke("agent").id == second.token.id


@pytest.mark.promise("tokens.revoked")
def test_a_token_ends_at_its_end(tokens: Tokens, clock: Clock) -> None:
    """A token opens until its end, and not at it."""
    made = tokens.create("agent", expires_at=clock.now + timedelta(hours=1))
    clock.advance(minutes=59, seconds=59)
    assert tokens.check(made.secret) is not None
    clock.advance(seconds=1)
    assert tokens.check(made.secret) is None
    assert not tokens.any()
    with pytest.raises(InvalidInput, match="in the future"):
        tokens.create("late", expires_at=clock.now)


def test_the_last_use_is_noted_within_the_hour(tokens: Tokens, clock: Clock) -> None:
    """The first use is noted, later ones once an hour: reading must not become writing."""
    secret = tokens.create("agent").secret
    first = clock.advance(minutes=25)
    for _ in range(3):
        tokens.check(secret)
        assert tokens.list()[0].last_used == first
        clock.advance(minutes=25)
    tokens.check(secret)
    assert tokens.list()[0].last_used == clock.now


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_name_can_be_read_in_a_list(tokens: Tokens, name: str) -> None:
    """Names are short and printable."""
    with pytest.raises(InvalidInput, match="name"):
        tokens.create(name)


@pytest.mark.parametrize("namespaces", [(), ("",), ("../x",), ("a/b",), "default"])
def test_a_scope_is_a_list_of_namespaces(tokens: Tokens, namespaces: tuple[str, ...]) -> None:
    """A scope is one namespace or more, each with a name that can be one."""
    with pytest.raises(InvalidInput):
        tokens.create("agent", namespaces=namespaces)


@pytest.mark.promise("tokens.hashed")
@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_no_secret_is_kept(tmp_path: Path, sealed: bool) -> None:
    """The database holds no secret, and in a sealed home neither name, scope nor the hash."""
    pytest.importorskip("cryptography")
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing", encrypt="file" if sealed else None) as memory:
        made = memory.tokens.create("night-agent", namespaces=("night-space",))
    with Memory.open(home, embedder="hashing") as memory:
        found = memory.tokens.check(made.secret)
    assert found is not None
    assert (found.name, found.namespaces) == ("night-agent", ("night-space",))
    connection = dbapi2.connect(str(home / "anaphora.db"))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    kept = (home / "anaphora.db").read_bytes()
    assert made.secret.encode() not in kept
    assert made.secret.removeprefix(PREFIX).encode() not in kept
    assert (b"night" in kept) is not sealed
