"""Where truth lies: private, durable, readable when frozen; each fault with an error of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sqlite_driver import IS_SAFE, JOURNAL, dbapi2, wal

from anaphora.errors import ReadOnly, StoreError
from anaphora.store.db import sqlite
from anaphora.store.db.engine import open_database
from anaphora.store.threads.sidecar import Sidecar, TurnNote

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
            name: write.connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("synchronous", "foreign_keys", "secure_delete", "journal_mode")
        }
        assert found == {
            "synchronous": 3, "foreign_keys": 1, "secure_delete": 1, "journal_mode": JOURNAL
        }  # fmt: skip
        assert write.connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 30_000
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
