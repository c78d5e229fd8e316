"""Truth: how it is opened and made, its tables, and writes from many threads and processes."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool
from tests.sqlite_driver import IS_SAFE, JOURNAL, dbapi2, wal

from anaphora.errors import (
    Closed,
    InvalidInput,
    Locked,
    ReadOnly,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
)
from anaphora.store.db import sqlite
from anaphora.store.db.engine import Database, Write, open_database
from anaphora.store.db.revision import REVISION, REVISION_TABLE
from anaphora.store.db.statements import insert
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.system.lock_holders import LOCKS

pytestmark = pytest.mark.internal

NOTES = [TurnNote("c", index, "hash", "Ada") for index in range(3)]


def write_home(path: Path) -> None:
    truth = open_database(path)
    Sidecar(truth, "default").note_turns(NOTES)
    truth.close()


def journal_mode(path: Path) -> str:
    connection = dbapi2.connect(str(path))
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    connection.close()
    return mode


def test_a_home_is_private(tmp_path: Path) -> None:
    """The database and all beside it can be read by its owner alone, from the first write on."""
    path = tmp_path / "home" / "truth.db"
    truth = open_database(path)
    Sidecar(truth, "default").note_turns(NOTES)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert set(modes) >= ({"truth.db", "truth.db-wal"} if IS_SAFE else {"truth.db"})
    assert set(modes.values()) == {0o600}
    truth.close()


def test_every_new_folder_is_private(tmp_path: Path) -> None:
    """Folders made on the way to the home are private, too; one that was there stays as it was."""
    tmp_path.chmod(0o755)
    write_home(tmp_path / "a" / "b" / "truth.db")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_strange_paths_are_paths(tmp_path: Path) -> None:
    """Characters that mean something in URLs mean nothing in a path."""
    path = tmp_path / "100% of #it? é" / "truth file.db"
    write_home(path)
    truth = open_database(f"sqlite:///{path}")
    assert len(Sidecar(truth, "default").turn_notes("c")) == 3
    truth.close()
    assert path.exists()


def test_settings_are_durable(tmp_path: Path) -> None:
    """Every connection syncs fully, checks foreign keys, wipes what is deleted."""
    truth = open_database(tmp_path / "truth.db")
    with truth.write("default") as write:
        found = {
            name: write.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "foreign_keys", "secure_delete", "journal_mode")
        }
        assert found == {
            "synchronous": 3, "foreign_keys": 1, "secure_delete": 1, "journal_mode": JOURNAL
        }  # fmt: skip
        assert write.connection.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000
    truth.close()


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False), ((3, 44, 5), False), ((3, 44, 6), True), ((3, 45, 0), False),
        ((3, 50, 6), False), ((3, 50, 7), True), ((3, 51, 0), False), ((3, 51, 2), False),
        ((3, 51, 3), True), ((3, 53, 4), True), ((4, 0, 0), True),
    ],
)  # fmt: skip
def test_which_versions_may_use_wal(version: tuple[int, int, int], safe: bool) -> None:
    """WAL is used only with a SQLite that has the fix for its corruption."""
    assert sqlite.wal_is_safe(version) is safe


@wal
def test_no_wal_with_an_unsafe_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unsafe SQLite makes and leaves no WAL database; a safe one takes WAL up again."""
    path = tmp_path / "truth.db"
    write_home(path)
    assert journal_mode(path) == "wal"
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "library_version", lambda: (3, 40, 1))
        write_home(path)
        assert journal_mode(path) == "delete"
        write_home(tmp_path / "new.db")
        assert journal_mode(tmp_path / "new.db") == "delete"
    write_home(path)
    assert journal_mode(path) == "wal"


def test_an_interrupted_beginning_is_finished(tmp_path: Path) -> None:
    """An empty file, left by a program that was killed while it made its home, becomes a home."""
    path = tmp_path / "truth.db"
    path.touch()
    truth = open_database(path)
    assert truth.version("default") == 0
    Sidecar(truth, "default").note_turns(NOTES)
    assert truth.version("default") == 3
    truth.close()


def test_a_server_that_takes_no_writes(postgresql_url: str) -> None:
    """A PostgreSQL that is read-only, as a standby is, answers, and says `ReadOnly` to a write."""
    truth = open_database(postgresql_url)
    Sidecar(truth, "default").note_turns(NOTES)
    truth.close()
    frozen = open_database(postgresql_url + "%20-cdefault_transaction_read_only%3Don")
    sidecar = Sidecar(frozen, "default")
    assert list(sidecar.turn_notes("c").values()) == NOTES
    with pytest.raises(ReadOnly):
        sidecar.note_turns(NOTES)
    frozen.close()


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    """A home below a plain file is a `StoreError` that names it."""
    (tmp_path / "home").write_text("a file")
    truth = open_database(tmp_path / "home" / "truth.db")
    with pytest.raises(StoreError, match=r"truth\.db"):
        Sidecar(truth, "default").note_turns(NOTES)


@pytest.mark.parametrize("damage", ["not a database", "cut in two", "overwritten inside"])
def test_a_damaged_file(tmp_path: Path, damage: str) -> None:
    """A damaged database is a `StoreError` that names the file, and the file is left as it is."""
    path = tmp_path / "truth.db"
    write_home(path)
    content = path.read_bytes()
    if damage == "not a database":
        content = b"This was a diary.\n" * 1_000
    elif damage == "cut in two":
        content = content[: len(content) // 2]
    else:
        content = content[:4096] + b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    truth = open_database(path)
    for use in (
        lambda: Sidecar(truth, "default").turn_notes("c"),
        lambda: Sidecar(truth, "default").note_turns(NOTES),
    ):
        with pytest.raises(StoreError) as refused:
            use()
        assert type(refused.value) is StoreError
        assert str(path) in str(refused.value)
    truth.close()
    assert path.read_bytes() == content


OpenTruth = Callable[[], Database]


@contextmanager
def outside(database: Path | str) -> Iterator[Connection]:
    """A transaction on the database that truth has no part in."""
    if isinstance(database, Path):
        database.parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(f"sqlite:///{database}", module=dbapi2, poolclass=NullPool)
    else:
        url = database.replace("postgresql://", "postgresql+psycopg://")
        engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        yield connection


def execute(database: Path | str, *statements: str) -> None:
    """Run statements on the database, outside of truth."""
    with outside(database) as connection:
        for statement in statements:
            connection.execute(text(statement))


@pytest.mark.promise("truth.refuses")
@pytest.mark.parametrize("found", ["0001", "0014"])
def test_an_older_home_is_left_alone(
    database: Path | str, open_again: OpenTruth, found: str
) -> None:
    """A home of an older schema is refused, for reading and for writing, and stays as it is."""
    truth = open_again()
    Sidecar(truth, "default").note_turns([TurnNote("c", 0, "hash")])
    truth.close()
    execute(database, f"UPDATE {REVISION_TABLE} SET version_num = '{found}'")
    older = open_again()
    with pytest.raises(SchemaTooOld) as refused:
        older.version("default")
    assert (refused.value.found, refused.value.needed) == (found, REVISION)
    with pytest.raises(SchemaTooOld):
        Sidecar(older, "default").note_turns([TurnNote("c", 1, "hash")])
    with pytest.raises(SchemaTooOld):
        older.ensure()
    execute(database, f"UPDATE {REVISION_TABLE} SET version_num = '{REVISION}'")
    assert list(Sidecar(open_again(), "default").turn_notes("c")) == [0]


def test_many_make_a_home_at_once(database: Path | str, open_again: OpenTruth) -> None:
    """The tables are made once, however many open a new home at the same moment."""
    truths = [open_again() for _ in range(6)]
    with ThreadPoolExecutor(len(truths)) as pool:
        written = [
            pool.submit(Sidecar(truth, "default").note_turns, [TurnNote("c", index, "hash")])
            for index, truth in enumerate(truths)
        ]
    assert [task.result() for task in written] == [None] * 6
    assert len(Sidecar(truths[0], "default").turn_notes("c")) == 6
    with outside(database) as connection:
        found = connection.execute(text(f"SELECT version_num FROM {REVISION_TABLE}"))
        assert found.scalars().all() == [REVISION]


@pytest.mark.promise("truth.refuses")
@pytest.mark.parametrize("found", ["9999", "a branch of somebody"])
def test_a_newer_home_is_left_alone(
    database: Path | str, open_again: OpenTruth, found: str
) -> None:
    """A home that a newer program wrote is refused, for reading and for writing, unchanged."""
    truth = open_again()
    Sidecar(truth, "default").note_turns([TurnNote("c", 0, "hash")])
    truth.close()
    execute(database, f"UPDATE {REVISION_TABLE} SET version_num = '{found}'")
    newer = open_again()
    with pytest.raises(SchemaTooNew) as refused:
        newer.version("default")
    assert refused.value.found == found
    with pytest.raises(SchemaTooNew):
        Sidecar(newer, "default").note_turns([TurnNote("c", 1, "hash")])
    execute(database, f"UPDATE {REVISION_TABLE} SET version_num = '{REVISION}'")
    assert list(Sidecar(open_again(), "default").turn_notes("c")) == [0]


def test_tables_of_another_program_are_left_alone(
    database: Path | str, open_again: OpenTruth
) -> None:
    """A database in which a table of ours belongs to another program is refused."""
    execute(database, "CREATE TABLE head (name TEXT)")
    with pytest.raises(StoreError, match="another program"):
        open_again().version("default")
    with pytest.raises(StoreError, match="another program"):
        Sidecar(open_again(), "default").note_turns([TurnNote("c", 0, "hash")])


def test_a_server_may_hold_other_tables(postgresql_url: str) -> None:
    """A PostgreSQL database may hold other programs' tables."""
    execute(postgresql_url, "CREATE TABLE alembic_version (version_num TEXT)")
    truth = Database(url=postgresql_url.replace("postgresql://", "postgresql+psycopg://"))
    Sidecar(truth, "default").note_turns([TurnNote("c", 0, "hash")])
    assert truth.version("default") == 1
    truth.close()


CHECK_IMPORTS = """
import sys
from pathlib import Path
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.system.lock_holders import LOCKS
from anaphora.store.db.engine import open_database

truth = open_database(Path(sys.argv[1]))
sidecar = Sidecar(truth, "default")
sidecar.version(), sidecar.turn_notes("c"), sidecar.known("a", "b"), sidecar.conversation_notes()
assert "sqlalchemy" not in sys.modules
assert not Path(sys.argv[1]).exists()
sidecar.note_turns([TurnNote("c", 0, "hash")])
assert "sqlalchemy" in sys.modules
truth.close()
"""

CHECK_STANDING = (
    CHECK_IMPORTS.split("assert not", maxsplit=1)[0]
    + """
sidecar.note_turns([TurnNote("c", 1, "hash")])
assert "sqlalchemy" not in sys.modules
truth.close()
"""
)


def test_only_making_tables_imports_sqlalchemy(tmp_path: Path) -> None:
    """Plain reads make no file; they and writes to a file with its tables import no SQLAlchemy."""
    path = str(tmp_path / "truth.db")
    for script in (CHECK_IMPORTS, CHECK_STANDING):
        subprocess.run([sys.executable, "-W", "error", "-c", script, path], check=True)


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
            insert(write.connection, "turn_note", [{**row, "seq": 1}])
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
    positions = "SELECT position FROM turn_note ORDER BY position"
    with truth.snapshot() as moment:
        before = moment.rows(positions, {})
        sidecar.note_turns([TurnNote("c", 1, "hash")])
        assert moment.rows(positions, {}) == before == [(0,)]
    assert truth.rows(positions, {}) == [(0,), (1,)]


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


SECOND = 1_000_000


def put(write: Write, table: str, **values: Any) -> None:
    (seq,) = write.take()
    insert(write.connection, table, [{"namespace": write.namespace, "seq": seq, **values}])


def put_record(write: Write, record_id: str, **values: Any) -> None:
    """A record with everything that belongs to it: an event and a vector in two parts."""
    at = 1_777_000_000 * SECOND
    put(
        write, "record", record_id=record_id, kind="memory", type="semantic", text="a fact",
        created_at=at, valid_from=at, reinforced=0, last_reinforced=at, same_key="k", **values,
    )  # fmt: skip
    put(write, "record_event", record_id=record_id, kind="added", at=at)
    for part in range(2):
        put(
            write, "vector", record_id=record_id, embedder="e", part=part, text_hash="h",
            data=bytes(range(256)),
        )  # fmt: skip


def test_values_come_back_as_they_were(truth: Database) -> None:
    """Texts, times far in the past and future, and bytes are the same on every database."""
    given = {
        "text": "\x00 \ud800 \x10 ok \U0001f600", "path": "Ünicode/пуť", "category": "",
        "tags": '["a"]', "payload": '{"n": 1}', "created_at": -(2**62), "expires_at": 2**62,
        "parent": None,
    }  # fmt: skip
    with truth.write("default") as write:
        at = {"valid_from": 0, "last_reinforced": 0, "reinforced": 3, "same_key": "k"}
        put(write, "record", record_id="a", kind="memory", type="episodic", **at, **given)
        put(
            write, "vector", record_id="a", embedder="e", part=0, text_hash="h",
            data=bytes(range(256)),
        )  # fmt: skip
    assert truth.rows(f"SELECT {', '.join(given)} FROM record", {}) == [tuple(given.values())]
    assert truth.rows("SELECT data FROM vector", {}) == [(bytes(range(256)),)]


def test_texts_have_one_order(truth: Database) -> None:
    """Texts are ordered by code point on every database, whatever its language."""
    names = ["Zebra", "Apple", "apple", "Äpfel", "a", "a b", "ab", "_", "日本", ""]
    with truth.write("default") as write:
        for name in names:
            put_record(write, name)
    ordered = truth.rows("SELECT record_id FROM record ORDER BY record_id", {})
    assert ordered == [(name,) for name in sorted(names)]
    found = truth.rows("SELECT record_id FROM record WHERE record_id LIKE 'a%'", {})
    assert {row[0] for row in found} == {"a", "a b", "ab", "apple"}


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize(
    ("held", "scope"),
    [
        ("BEGIN IMMEDIATE", "write"),
        ("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", "write"),
        ("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE", "read"),
    ],
)
def test_a_lock_is_named(
    held: str, scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another program keeps locked is told as locked, with the program where it is known."""
    path = tmp_path / "anaphora.db"
    write_home(path)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    code = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.executescript(sys.argv[2] + ';')\n"
        "print(1, flush=True)\n"
        "sys.stdin.read()"
    )
    words = [sys.executable, "-c", code, str(path), held]
    truth = open_database(path)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        begin = truth.write("default") if scope == "write" else truth.read()
        with pytest.raises(Locked, match="it is locked by ") as caught, begin:
            pass
        holder.communicate()
    truth.close()
    if LOCKS.exists():
        assert f"(process {holder.pid})" in caught.value.holder
