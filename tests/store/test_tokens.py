"""Tokens: the secret is shown once, opens its namespaces alone, and nothing once revoked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pysqlite3 import dbapi2
from tests.conftest import Clock

from anaphora.errors import InvalidInput, NotFound
from anaphora.store.crypto.cipher import Keys
from anaphora.store.crypto.columns import CLEAR, SealedRows, Sealer
from anaphora.store.db.engine import Database, open_database
from anaphora.store.tokens import PREFIX, Tokens

pytestmark = pytest.mark.internal

OpenTruth = Callable[[], Database]


def opened(truth: Database, clock: Clock, sealer: Sealer = CLEAR, start: int = 1) -> Tokens:
    numbers, draws = itertools.count(start), itertools.count(start)
    return Tokens(
        truth,
        sealer,
        clock=clock,
        ids=lambda: f"t{next(numbers)}",
        random=lambda size: next(draws).to_bytes(size, "big"),
    )


@pytest.mark.promise("tokens.scoped")
def test_a_token_opens_its_namespaces_alone(open_again: OpenTruth, clock: Clock) -> None:
    """A secret gives the token it was made with, from any process, and that its scope alone."""
    tokens = opened(open_again(), clock)
    made = tokens.create("agent", namespaces=("work", "play", "work"), read_only=True)
    assert made.secret.startswith(PREFIX)
    found = opened(open_again(), clock).check(made.secret)
    assert found is not None
    assert (found.id, found.name, found.namespaces) == ("t1", "agent", ("work", "play"))
    assert found.read_only
    assert [found.opens(name) for name in ("work", "play", "default", "*")] == [
        True, True, False, False,
    ]  # fmt: skip
    everything = tokens.create("all", namespaces=("*",)).token
    assert everything.opens("anything")
    for wrong in ("", "x", made.secret[:-1], made.secret + "0", made.secret.upper(), "\ud800\x00"):
        assert tokens.check(wrong) is None


@pytest.mark.promise("tokens.scoped")
def test_a_token_of_before_may_not_index(open_again: OpenTruth, clock: Clock) -> None:
    """The right to index is kept with a token, and no token has it that was made without."""
    tokens = opened(open_again(), clock)
    tokens.create("before", namespaces=("work",))
    tokens.create("indexer", namespaces=("work", "*"), may_index=True)
    again = opened(open_again(), clock).list()
    assert [(one.may_index, one.namespaces) for one in again] == [
        (False, ("work",)),
        (True, ("work", "*")),
    ]
    assert not again[0].opens("/projects")


@pytest.mark.promise("tokens.revoked")
def test_a_revoked_token_opens_nothing_anywhere(open_again: OpenTruth, clock: Clock) -> None:
    """What one process revokes another one refuses with its next check."""
    here, there = opened(open_again(), clock), opened(open_again(), clock, start=10)
    made = here.create("agent")
    assert there.check(made.secret) is not None
    clock.advance(minutes=1)
    assert here.revoke("agent").id == made.token.id
    assert there.check(made.secret) is None
    assert [token.revoked_at for token in there.list()] == [clock.now]
    assert not there.any()
    with pytest.raises(NotFound):
        there.revoke("agent")


def test_a_name_that_several_have_needs_an_id(truth: Database, clock: Clock) -> None:
    """Revoking never guesses which of two tokens was meant."""
    tokens = opened(truth, clock)
    first, second = tokens.create("agent"), tokens.create("agent")
    with pytest.raises(InvalidInput, match="id"):
        tokens.revoke("agent")
    tokens.revoke(first.token.id)
    assert tokens.revoke("agent").id == second.token.id


@pytest.mark.promise("tokens.revoked")
def test_a_token_ends_at_its_end(truth: Database, clock: Clock) -> None:
    """A token opens until its end, and not at it."""
    tokens = opened(truth, clock)
    made = tokens.create("agent", expires_at=clock.now + timedelta(hours=1))
    clock.advance(minutes=59, seconds=59)
    assert tokens.check(made.secret) is not None
    clock.advance(seconds=1)
    assert tokens.check(made.secret) is None
    assert not tokens.any()
    with pytest.raises(InvalidInput, match="in the future"):
        tokens.create("late", expires_at=clock.now)


def test_the_last_use_is_noted_within_the_hour(truth: Database, clock: Clock) -> None:
    """The first use is noted, later ones once an hour: reading must not become writing."""
    tokens = opened(truth, clock)
    secret = tokens.create("agent").secret
    before = truth.version("default")
    for _ in range(3):
        clock.advance(minutes=25)
        tokens.check(secret)
    assert truth.version("default") == before + 1
    clock.advance(minutes=25)
    tokens.check(secret)
    assert truth.version("default") == before + 2
    assert tokens.list()[0].last_used == clock.now


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 101])
def test_a_name_can_be_read_in_a_list(truth: Database, clock: Clock, name: str) -> None:
    """Names are short and printable."""
    with pytest.raises(InvalidInput, match="name"):
        opened(truth, clock).create(name)


@pytest.mark.parametrize("namespaces", [(), ("",), ("../x",), ("a/b",), "default"])
def test_a_scope_is_a_list_of_namespaces(
    truth: Database, clock: Clock, namespaces: tuple[str, ...]
) -> None:
    """A scope is one namespace or more, each with a name that can be one."""
    with pytest.raises(InvalidInput):
        opened(truth, clock).create("agent", namespaces=namespaces)


@pytest.mark.promise("tokens.hashed")
@pytest.mark.parametrize("sealed", [False, True], ids=["clear", "sealed"])
def test_no_secret_is_kept(tmp_path: Path, clock: Clock, sealed: bool) -> None:
    """The database holds no secret, and in a sealed home neither name, scope nor the hash."""
    pytest.importorskip("cryptography")
    sealer: Sealer = SealedRows(Keys(bytes([7]) * 32, bytes)) if sealed else CLEAR
    truth = open_database(tmp_path / "truth.db")
    made = opened(truth, clock, sealer).create("night-agent", namespaces=("night-space",))
    found = opened(truth, clock, sealer).check(made.secret)
    assert found is not None
    assert (found.name, found.namespaces) == ("night-agent", ("night-space",))
    truth.close()
    connection = dbapi2.connect(str(tmp_path / "truth.db"))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    kept = (tmp_path / "truth.db").read_bytes()
    assert made.secret.encode() not in kept
    assert made.secret.removeprefix(PREFIX).encode() not in kept
    assert (b"night" in kept) is not sealed
