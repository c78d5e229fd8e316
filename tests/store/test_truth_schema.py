"""How the tables come to be: made, migrated, refused when newer; the same by every road."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.pool import NullPool
from tests.sqlite_driver import dbapi2

from anaphora.errors import SchemaTooNew, StoreError
from anaphora.store.db import migrate
from anaphora.store.db.engine import Database
from anaphora.store.db.revision import REVISION, REVISION_TABLE, is_older
from anaphora.store.threads.sidecar import ConversationNote, Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore

pytestmark = pytest.mark.internal

OpenTruth = Callable[[], Database]
ADA = "Ada \x00\ud800"
FIXTURES = Path(__file__).parent / "fixtures"


def described(truth: Database) -> dict[str, Any]:
    """Everything that the database itself knows about its tables."""
    with truth.read() as connection:
        found = inspect(connection)
        return {
            table: {
                "columns": [
                    (c["name"], str(c["type"]), getattr(c["type"], "collation", None),
                     c["nullable"], c["default"])
                    for c in found.get_columns(table)
                ],
                "key": found.get_pk_constraint(table),
                "foreign": found.get_foreign_keys(table),
                "unique": found.get_unique_constraints(table),
                "indexes": sorted(map(_index, found.get_indexes(table)), key=str),
                "options": found.get_table_options(table),
                "checks": found.get_check_constraints(table),
            }
            for table in sorted(found.get_table_names())
        }  # fmt: skip


def _index(found: Mapping[str, Any]) -> dict[str, Any]:
    """An index as values: what it leaves out is told as a statement, and no two are equal."""
    options = {name: str(value) for name, value in found.get("dialect_options", {}).items()}
    return {**found, "dialect_options": options}


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


def test_making_and_migrating_give_one_schema(database: Path | str, open_again: OpenTruth) -> None:
    """A database made at once and one brought up by all migrations have the same tables."""
    made = open_again()
    made.ensure()
    expected = described(made)
    assert set(expected) >= {REVISION_TABLE, "head", "turn_note"}
    made.close()
    if isinstance(database, Path):
        database.unlink()
    else:
        execute(database, *(f"DROP TABLE {table} CASCADE" for table in expected))
    with outside(database) as connection:
        migrate.upgrade(connection)
    assert described(open_again()) == expected


def test_the_newest_migration_is_the_revision_of_this_program() -> None:
    """The migrations form one line that ends at the revision that fresh homes are given."""
    script = ScriptDirectory.from_config(migrate.configuration())
    assert script.get_heads() == [REVISION]
    assert all(is_older(step.revision) or step.revision == REVISION
               for step in script.walk_revisions())  # fmt: skip


@pytest.mark.promise("truth.migrates")
@pytest.mark.parametrize(
    "fixture", sorted(FIXTURES.glob("truth_*.sql")), ids=lambda fixture: fixture.stem
)
def test_a_home_of_every_schema_opens(fixture: Path, tmp_path: Path) -> None:
    """A home that any released version wrote opens, with all it held, and can be written."""
    path = tmp_path / "truth.db"
    connection = dbapi2.connect(str(path))
    connection.executescript(fixture.read_text("utf-8"))
    connection.close()
    truth = Database(path=path)
    sidecar = Sidecar(truth, "default")
    kept = {
        index: TurnNote(
            "c", index, f"hash{index}", "Ada \x00\ud800", "chatgpt", "chat", f"m{index}"
        )
        for index in range(2)
    }
    gone = TurnNote("c", 2, "", None, "chatgpt", "chat", "m2", forgotten=True)
    assert sidecar.turn_notes("c") == {**kept, 2: gone}
    assert set(sidecar.known("chatgpt", "chat")) == {"m0", "m1", "m2"}
    assert sidecar.conversation_notes().get("c-2") == ConversationNote(
        "c-2", "chatgpt", "chat", "c", 1
    )
    version = sidecar.version()
    assert version == (6 if fixture.stem < "truth_0006" else 7)
    sidecar.note_turns([TurnNote("c", 3, "hash3")])
    assert sidecar.version() == version + 1
    truth.close()


@pytest.mark.promise("truth.migrates")
@pytest.mark.parametrize(
    "fixture",
    sorted(path for path in FIXTURES.glob("truth_*.sql") if path.stem >= "truth_0003"),
    ids=lambda fixture: fixture.stem,
)
def test_threads_of_every_schema_are_read(fixture: Path, tmp_path: Path) -> None:
    """Threads in the database of a home that any released version wrote come back, and go on."""
    connection = dbapi2.connect(str(tmp_path / "truth.db"))
    connection.executescript(fixture.read_text("utf-8"))
    connection.close()
    truth = Database(path=tmp_path / "truth.db")
    store = SqlConversationStore(truth, "threads", sidecar=Sidecar(truth, "threads"))
    assert [(s.conversation_id, s.title, s.turn_count) for s in store.list()] == [("c", "Named", 2)]
    first, second = store.recent("c")
    assert (first.text, first.speaker) == ("what \x00\ud800?", "Ada")
    assert (second.intent_id, second.ts_text) == ("i1", "2026-04-30T12:00:00.005+03:30")
    assert store.append_user("c", "and on")
    assert store.append_user("gone", "anew")
    assert [turn.text for turn in store.recent("gone")] == ["anew"]
    truth.close()


def test_there_is_a_fixture_of_this_schema() -> None:
    """The schema of this program is kept as a fixture, for the programs to come."""
    assert (FIXTURES / f"truth_{REVISION}.sql").exists()


def test_many_open_an_older_home_at_once(database: Path | str, open_again: OpenTruth) -> None:
    """A home of the first schema is migrated once, however many open it at the same moment."""
    with outside(database) as connection:
        migrate.upgrade(connection, "0001")
    truths = [open_again() for _ in range(6)]
    with ThreadPoolExecutor(len(truths)) as pool:
        versions = list(pool.map(lambda truth: truth.version("default"), truths))
        written = [
            pool.submit(Sidecar(truth, "default").note_turns, [TurnNote("c", index, "hash")])
            for index, truth in enumerate(truths)
        ]
    assert versions == [0] * 6
    assert [task.result() for task in written] == [None] * 6
    assert len(Sidecar(truths[0], "default").turn_notes("c")) == 6
    with outside(database) as connection:
        found = connection.execute(text(f"SELECT version_num FROM {REVISION_TABLE}"))
        assert found.scalars().all() == [REVISION]


def test_a_failed_migration_leaves_the_older_home(
    database: Path | str, open_again: OpenTruth
) -> None:
    """A migration that cannot be finished is undone as a whole, and the home stays what it was."""
    with outside(database) as connection:
        migrate.upgrade(connection, "0001")
        # In the way of the last table that the second migration makes.
        connection.execute(text("CREATE TABLE vector (name TEXT)"))
    with pytest.raises(StoreError):
        open_again().version("default")
    execute(database, "DROP TABLE vector")
    with outside(database) as connection:
        assert not inspect(connection).has_table("record")
    assert open_again().version("default") == 0


@pytest.mark.promise("truth.migrates")
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
    """A PostgreSQL database may hold other programs' tables, Alembic's own among them."""
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

def loaded():
    return [name for name in ("sqlalchemy", "alembic") if name in sys.modules]

truth = open_database(Path(sys.argv[1]))
sidecar = Sidecar(truth, "default")
sidecar.version(), sidecar.turn_notes("c"), sidecar.known("a", "b"), sidecar.conversation_notes()
assert loaded() == [], loaded()
assert not Path(sys.argv[1]).exists()
sidecar.note_turns([TurnNote("c", 0, "hash")])
assert loaded() == ["sqlalchemy"], loaded()
truth.close()
"""

CHECK_READING = CHECK_IMPORTS.split("assert not", maxsplit=1)[0] + "truth.close()\n"


def test_reading_imports_no_sqlalchemy(tmp_path: Path) -> None:
    """Plain reads make no file and import no SQLAlchemy, and a fresh home imports no Alembic."""
    path = str(tmp_path / "truth.db")
    for script in (CHECK_IMPORTS, CHECK_READING):
        subprocess.run([sys.executable, "-W", "error", "-c", script, path], check=True)
