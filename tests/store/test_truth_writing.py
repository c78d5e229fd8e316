"""Writes from many threads and processes: none lost, none half-done, numbered in commit order."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select
from tests.sqlite_driver import IS_SAFE, dbapi2

from anaphora.errors import Closed, InvalidInput
from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.schema import metadata
from anaphora.store.threads.sidecar import Sidecar, TurnNote

pytestmark = pytest.mark.internal
turn_note = metadata.tables["turn_note"]

OpenTruth = Callable[[], Database]

WRITER = """
import sys
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.store.db.engine import open_database

place, name, count = sys.argv[1:]
truth = open_database(place)
sidecar = Sidecar(truth, "default")
for index in range(int(count)):
    sidecar.note_turns([TurnNote(name, index, "hash", name)])
    print(index, flush=True)
truth.close()
"""


def start_writer(database: Path | str, name: str, count: int) -> subprocess.Popen[str]:
    """A process that notes `count` turns one by one and acknowledges each on its output."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITER, str(database), name, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sequence(truth: Database) -> list[int]:
    rows = truth.rows(
        "SELECT seq FROM turn_note WHERE namespace = :namespace ORDER BY seq",
        {"namespace": "default"},
    )
    return [row[0] for row in rows]


@pytest.mark.promise("truth.processes")
@pytest.mark.slow
def test_eight_processes_write_at_once(database: Path | str, open_again: OpenTruth) -> None:
    """Eight processes that also make the database: nothing lost, and no number ever skipped."""
    writers = [start_writer(database, f"writer {n}", 25) for n in range(8)]
    truth = open_again()
    for writer in writers:
        assert writer.stdout is not None
        for index, acknowledged in enumerate(writer.stdout):
            assert acknowledged == f"{index}\n"
            # At every moment the committed numbers are dense: a later one never shows before.
            seen = sequence(truth)
            assert seen == list(range(1, len(seen) + 1))
            assert truth.version("default") >= len(seen)
    assert [writer.communicate()[1] for writer in writers] == [""] * 8
    assert sequence(truth) == list(range(1, 201))
    assert truth.version("default") == 200
    for n in range(8):
        assert len(Sidecar(truth, "default").turn_notes(f"writer {n}")) == 25


@pytest.mark.slow
@pytest.mark.parametrize("acknowledged", [1, 7, 30])
def test_a_killed_writer_loses_nothing(
    database: Path | str, open_again: OpenTruth, acknowledged: int
) -> None:
    """After `kill -9` every acknowledged note is there, and the next program just goes on."""
    writer = start_writer(database, "c", 100_000)
    assert writer.stdout is not None
    for _ in range(acknowledged):
        writer.stdout.readline()
    writer.kill()
    # Not `communicate`: it does not see what `readline` has read ahead.
    said = acknowledged + len(writer.stdout.read().splitlines())
    writer.communicate()
    truth = open_again()
    sidecar = Sidecar(truth, "default")
    there = sidecar.turn_notes("c")
    # The one that was committed but not yet acknowledged may be there, and nothing beyond it.
    assert len(there) in {said, said + 1}
    assert list(there) == list(range(len(there)))
    assert sequence(truth) == list(range(1, len(there) + 1))
    sidecar.note_turns([TurnNote("c", len(there), "hash")])
    assert sidecar.version() == len(there) + 1
    if isinstance(database, Path):
        with dbapi2.connect(str(database)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def test_threads_write_at_once(truth: Database) -> None:
    """Threads of one process share a truth: nothing lost, every number given once."""
    sidecar = Sidecar(truth, "default")
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for index in range(10):
                sidecar.note_turns([TurnNote(name, index, "hash")])
                assert index in sidecar.turn_notes(name)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(f"thread {n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sequence(truth) == list(range(1, 61))


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


def test_other_programs_see_a_write_at_once(truth: Database, open_again: OpenTruth) -> None:
    """What one program wrote is in the next plain read of another that is already open."""
    mine, yours = Sidecar(truth, "default"), Sidecar(open_again(), "default")
    for index in range(5):
        mine.note_turns([TurnNote("c", index, "hash")])
        assert index in yours.turn_notes("c")
        assert yours.version() == mine.version()


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
