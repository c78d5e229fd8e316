"""A sealed home of an older version: it opens whole, and is sealed as a new one from then on."""

from __future__ import annotations

import json
import shutil
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sqlite_driver import dbapi2

from anaphora import Memory, keys
from anaphora.errors import StoreError, Tampered
from anaphora.store.crypto.marker import FORMAT
from anaphora.store.db.tables import TABLES
from anaphora.store.home import convert_rows

pytestmark = pytest.mark.internal

pytest.importorskip("cryptography")

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
OLD = Path(__file__).parent / "store" / "fixtures" / "sealed_0006.zip"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What the version before wrote; `make_sealed.py` beside the fixture says what is in it."""
    place = tmp_path / "home"
    zipfile.ZipFile(OLD).extractall(place)
    (place / "master.key").chmod(0o600)
    return place


def opened(home: Path, **options: Any) -> Memory:
    return Memory.open(home, embedder="hashing", clock=lambda: NOW, **options)


def cells(home: Path, statement: str) -> list[Any]:
    with closing(dbapi2.connect(str(home / "anaphora.db"), isolation_level=None)) as connection:
        return list(connection.execute(statement).fetchall())


def marker(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "sealed.json").read_text())
    return found


def everything(memory: Memory) -> None:
    """What the fixture holds is all there, however it is asked for."""
    assert [one.text for one in memory.history("alarm.code")] == [
        "The alarm code is 1111", "The alarm code is 2222",
    ]  # fmt: skip
    first, gate = memory.history("gate.code")
    assert (first.payload, gate.payload, gate.tags) == ({"digits": 4}, None, ("again",))
    (hit,) = memory.recall("who likes tea?", top_k=1)
    tea = memory.get(hit.id)
    assert (tea.text, tea.sources, tea.conversation_id) == ("Rafi likes tea", ("diary",), "kitchen")
    said = {hit.text: hit.speaker for hit in memory.recall_conversation(None, "bees and boats")}
    assert said == {"Mara keeps bees": "Mara", "Rafi sails boats": "Rafi"}
    assert [token.name for token in memory.tokens.list() if token.revoked_at is None] == ["reader"]
    assert [gap.question for gap in memory.gaps()] == ["who keeps wasps?"]
    package = memory.recall_context("what does queue.py push?")
    assert "queue.py" in [target.path for target in package.primary_targets]
    assert "push must stay idempotent" in str(package)
    (own,) = memory.scoped("work").history("alarm.code")
    assert own.text == "Work has a path too"


def anchored(home: Path) -> dict[str, int]:
    """How many rows of each table have an anchor of the new form; every row must."""
    found = {}
    for table, plan in TABLES.items():
        if plan.anchor:
            rows = cells(home, f"SELECT {plan.anchor} FROM {table}")
            assert all(str(cell).startswith("an2") for (cell,) in rows), table
            found[table] = len(rows)
    return found


@pytest.mark.promise("sealed.renews")
def test_a_home_of_the_version_before_opens(home: Path) -> None:
    """Every word, note, token and gap is there; every row is sealed anew; the home goes on."""
    assert marker(home)["version"] == 1
    with opened(home) as memory:
        everything(memory)
        memory.remember("The alarm code is 4444", path="alarm.code")
        assert memory.history("alarm.code")[-1].text == "The alarm code is 4444"
        memory.tokens.revoke("reader")
        assert [check for check in memory.doctor() if not check.ok] == []
    assert (marker(home)["version"], marker(home)["state"]) == (FORMAT, "sealed")
    assert min(anchored(home)[table] for table in ("record", "record_event", "turn_note")) > 1
    with opened(home) as memory:
        assert memory.history("alarm.code")[-1].text == "The alarm code is 4444"


@pytest.mark.promise("sealed.renews")
def test_it_is_broken_off_anywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal that fails in the middle loses nothing: the next opening ends it."""
    renewed = convert_rows._renew_table
    left = [0]

    def fails(*given: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise StoreError("renew", "truth", "the test says so")
        return renewed(*given)

    monkeypatch.setattr(convert_rows, "_renew_table", fails)
    for calls in (0, 3, 18, 25):
        left[0] = calls
        with pytest.raises(StoreError):
            opened(home)
    monkeypatch.setattr(convert_rows, "_renew_table", renewed)
    with opened(home) as memory:
        everything(memory)
    anchored(home)


@pytest.mark.promise("sealed.renews")
@pytest.mark.parametrize("road", ["decrypt", "rotate", "deep"])
def test_an_older_home_is_converted(home: Path, road: str) -> None:
    """Opening it up, or giving it other keys, works without having opened it before."""
    if road == "decrypt":
        keys.decrypt(home)
        assert cells(home, "SELECT COUNT(*) FROM record WHERE text LIKE 'The%code%'") == [(4,)]
    else:
        keys.rotate_key(home, deep=road == "deep")
    with opened(home) as memory:
        everything(memory)
    if road != "decrypt":
        anchored(home)


@pytest.mark.promise("sealed.renews")
def test_what_is_older_is_refused_afterwards(home: Path) -> None:
    """A row of the older form that is put back is an error; so is an older sealed.json changed."""
    (old,) = cells(home, "SELECT text FROM record WHERE rowid = 1")
    old_marker = (home / "sealed.json").read_text()
    with opened(home) as memory:
        everything(memory)
    with closing(dbapi2.connect(str(home / "anaphora.db"), isolation_level=None)) as connection:
        connection.execute("UPDATE record SET text = ? WHERE rowid = 1", old)
    with opened(home) as memory, pytest.raises(Tampered):
        memory.history("alarm.code")
    stripped = marker(home) | {"version": 1}
    (home / "sealed.json").write_text(json.dumps(stripped))
    with pytest.raises(Tampered):
        opened(home)
    (home / "sealed.json").write_text(old_marker)
    opened(home).close()
    assert marker(home)["version"] == FORMAT


@pytest.mark.promise("sealed.renews")
def test_a_row_that_does_not_open_stops_nothing(home: Path) -> None:
    """A damaged row of an older home stays as it was and is refused; all others are renewed."""
    with closing(dbapi2.connect(str(home / "anaphora.db"), isolation_level=None)) as connection:
        connection.execute("UPDATE record SET text = 'an1:AAAA' WHERE rowid = 3")
    with opened(home) as memory:
        assert len(memory.history("alarm.code")) == 2
        with pytest.raises(Tampered):
            memory.history("gate.code")


@pytest.mark.promise("sealed.renews")
def test_an_older_home_on_a_server(home: Path, tmp_path: Path, postgresql_url: str) -> None:
    """On PostgreSQL, too, and for a second server that has a copy of the older sealed.json."""
    from sqlalchemy import create_engine

    from anaphora.store.db.engine import open_database
    from anaphora.store.db.schema import metadata

    truth = open_database(postgresql_url)
    truth.ensure()
    truth.close()
    engine = create_engine(postgresql_url.replace("postgresql://", "postgresql+psycopg://"))
    there = {name for (name,) in cells(home, "SELECT name FROM sqlite_master")}
    with engine.begin() as connection:
        for table in metadata.sorted_tables[1:]:
            if table.name not in there:
                continue
            known = {name for _, name, *_ in cells(home, f"PRAGMA table_info({table.name})")}
            # Of columns that came later it has none.
            names = [column.name for column in table.columns if column.name in known]
            rows = cells(home, f"SELECT {', '.join(names)} FROM {table.name}")
            given = [dict(zip(names, row, strict=True)) for row in rows]
            if given and table.name != "anaphora_schema":
                connection.execute(table.insert(), given)
    engine.dispose()
    (home / "anaphora.db").unlink()
    second = tmp_path / "second"
    second.mkdir()
    for name in ("sealed.json", "master.key"):
        shutil.copy(home / name, second / name)
    with opened(home, database=postgresql_url) as memory:
        assert len(memory.history("alarm.code")) == 2
        memory.remember("The alarm code is 4444", path="alarm.code")
    with opened(second, database=postgresql_url) as memory:
        assert [one.text[-4:] for one in memory.history("alarm.code")] == ["1111", "2222", "4444"]
        assert len(memory.tokens.list()) == 2
    assert marker(second)["version"] == FORMAT
