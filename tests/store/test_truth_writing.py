"""Writes from many threads and processes: none lost, none half-done, numbered in commit order."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable

import pytest
from sqlalchemy import select
from tests.sqlite_driver import IS_SAFE

from anaphora.errors import Closed, InvalidInput
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.schema import metadata
from anaphora.store.threads.sidecar import Sidecar, TurnNote

pytestmark = pytest.mark.internal
turn_note = metadata.tables["turn_note"]

OpenTruth = Callable[[], Database]


def sequence(truth: Database) -> list[int]:
    rows = truth.rows(
        "SELECT seq FROM turn_note WHERE namespace = :namespace ORDER BY seq",
        {"namespace": "default"},
    )
    return [row[0] for row in rows]


def test_a_failing_body_undoes_the_write(truth: Database) -> None:
    """What the body of a write raises comes out, its changes do not, and its numbers come again."""
    row = {"namespace": "default", "conversation_id": "c", "position": 0, "turn_hash": "h"}

    def fail() -> None:
        with truth.write("default") as write:
            assert list(write.take(3)) == [1, 2, 3]
            write.connection.execute(turn_note.insert().values(**row, seq=1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert truth.version("default") == 0
    assert sequence(truth) == []
    with truth.write("default") as write:
        assert list(write.take()) == [1]


@pytest.mark.promise("truth.sequence")
def test_numbers_count_within_a_namespace(truth: Database) -> None:
    """Each namespace has numbers of its own, and a write that takes none changes no version."""
    with truth.write("one") as write:
        assert list(write.take(5)) == [1, 2, 3, 4, 5]
        assert list(write.take(2)) == [6, 7]
    with truth.write("two") as write:
        assert list(write.take()) == [1]
    with truth.write("two"):
        pass
    assert (truth.version("one"), truth.version("two"), truth.version("none")) == (7, 1, 0)


def test_a_read_sees_one_moment(truth: Database, open_again: OpenTruth) -> None:
    """A commit of somebody else during a read does not show in it, and is not held up by it."""
    if truth.path is not None and not IS_SAFE:
        pytest.skip("with a rollback journal a writer waits for readers")
    sidecar = Sidecar(open_again(), "default")
    sidecar.note_turns([TurnNote("c", 0, "hash")])
    positions = select(turn_note.c.position)
    with truth.read() as connection:
        before = connection.execute(positions).scalars().all()
        sidecar.note_turns([TurnNote("c", 1, "hash")])
        assert connection.execute(positions).scalars().all() == before == [0]
    with truth.read() as connection:
        assert sorted(connection.execute(positions).scalars()) == [0, 1]


def _write_in_child(truth: Database) -> None:
    Sidecar(truth, "default").note_turns([TurnNote("child", 0, "hash")])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_child_opens_its_own_connections(truth: Database) -> None:
    """A child made by fork writes to the same truth, and its parent goes on unharmed."""
    sidecar = Sidecar(truth, "default")
    sidecar.note_turns([TurnNote("parent", 0, "hash")])
    child = multiprocessing.get_context("fork").Process(target=_write_in_child, args=(truth,))
    child.start()
    child.join()
    assert child.exitcode == 0
    sidecar.note_turns([TurnNote("parent", 1, "hash")])
    assert sequence(truth) == [1, 2, 3]


def test_a_closed_truth_says_so(truth: Database) -> None:
    """After `close`, which may be called twice, every use raises `Closed`."""
    Sidecar(truth, "default").note_turns([TurnNote("c", 0, "hash")])
    truth.close()
    truth.close()
    with pytest.raises(Closed):
        truth.version("default")
    with pytest.raises(Closed), truth.write("default"):
        pass


@pytest.mark.parametrize("database", ["", ":memory:", "mysql://me:secret@host/db", "s3://bucket"])
def test_other_databases_are_refused(database: str) -> None:
    """A URL that is neither SQLite nor PostgreSQL is invalid, and its password is not shown."""
    with pytest.raises(InvalidInput) as refused:
        open_database(database)
    assert "secret" not in str(refused.value)
