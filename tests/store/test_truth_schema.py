"""How the tables come to be, and that those of another schema are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool
from tests.sqlite_driver import dbapi2

from anaphora.errors import SchemaTooNew, SchemaTooOld, StoreError
from anaphora.store.db.engine import Database
from anaphora.store.db.revision import REVISION, REVISION_TABLE
from anaphora.store.threads.sidecar import Sidecar, TurnNote

pytestmark = pytest.mark.internal

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

CHECK_READING = CHECK_IMPORTS.split("assert not", maxsplit=1)[0] + "truth.close()\n"


def test_reading_imports_no_sqlalchemy(tmp_path: Path) -> None:
    """Plain reads make no file and import no SQLAlchemy."""
    path = str(tmp_path / "truth.db")
    for script in (CHECK_IMPORTS, CHECK_READING):
        subprocess.run([sys.executable, "-W", "error", "-c", script, path], check=True)
