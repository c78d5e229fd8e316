"""A home of an older build is refused as it is; what such a build has exported comes in whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.sqlite_driver import dbapi2

from anaphora import Memory
from anaphora.errors import SchemaTooOld

pytestmark = pytest.mark.promise("truth.refuses")

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
FIXTURES = Path(__file__).parent / "store" / "fixtures"
SCHEMA = (FIXTURES / "truth_0001.sql").read_text("utf-8")
EXPORT = FIXTURES / "export_ac079cda.jsonl"
THREAD = '{"conversation_id":"c","turns":[],"updated_at":"2026-04-30T12:00:00Z"}'
USES: dict[str, Callable[[Memory], object]] = {
    "remember": lambda memory: memory.remember("one more"),
    "append": lambda memory: memory.conversations.append("c", "user", "one more", speaker="Ann"),
    "recall": lambda memory: memory.recall("tea"),
    "recall_conversation": lambda memory: memory.recall_conversation(None, "tea"),
    "list": lambda memory: memory.list(),
    "projects": lambda memory: memory.projects(),
    "stats": lambda memory: memory.stats(),
    "export": lambda memory: memory.export(memory.home.with_name("e.jsonl")),
    "backup": lambda memory: memory.backup(memory.home.with_name("b.zip")),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of the first schema."""
    root = tmp_path / "home"
    (root / "conversations").mkdir(parents=True)
    (root / "conversations" / "c.json").write_text(THREAD, "utf-8")
    with closing(dbapi2.connect(str(root / "anaphora.db"))) as connection:
        connection.executescript(SCHEMA)
    return root


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The schema of this build, as a new home has it."""
    home = tmp_path_factory.mktemp("new")
    with opened(home) as memory:
        memory.remember("Rafi likes tea")
    with closing(dbapi2.connect(str(home / "anaphora.db"))) as connection:
        return str(connection.execute("SELECT version_num FROM anaphora_schema").fetchone()[0])


def opened(home: Path) -> Memory:
    return Memory.open(home, embedder="hashing", clock=lambda: NOW, warm=False)


def contents(home: Path) -> dict[str, bytes]:
    """Every byte of a home but its locks and index, which are disposable."""
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    stored = (path for path in paths if "index" not in path.parts and path.suffix != ".lock")
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in stored}


def refusal(path: Path, found: str, needed: str) -> str:
    return (
        f"cannot open {path}: an older build of Anaphora wrote it (version {found}, this one reads "
        f"{needed}): run `anaphora export FILE` with that build, then `anaphora import FILE` with "
        "this one"
    )


@pytest.mark.parametrize("use", USES)
def test_it_is_refused_unchanged(home: Path, use: str, needed: str) -> None:
    """Every call that needs stored data says how to carry it over, and writes nothing."""
    before = contents(home)
    with opened(home) as memory, pytest.raises(SchemaTooOld) as refused:
        USES[use](memory)
    assert str(refused.value) == refusal(home / "anaphora.db", "0001", needed)
    assert contents(home) == before


def test_the_commands_say_it(home: Path, needed: str) -> None:
    """One line says what is wrong and what to do, by `doctor` too; nothing is written."""
    before = contents(home)
    error = f"anaphora: {refusal(home / 'anaphora.db', '0001', needed)}\n"
    environ = {**os.environ, "ANAPHORA_HOME": str(home), "ANAPHORA_EMBEDDER": "hashing"}
    for words in (("recall", "tea"), ("remember", "one more"), ("list",), ("doctor",)):
        done = run_command(*words, environ=environ)
        assert (done.returncode, done.stdout, done.stderr) == (4, "", error)
    assert contents(home) == before


def test_doctor_goes_on(home: Path, needed: str) -> None:
    """Among the checks is what is wrong with the database; all others are made as well."""
    before = contents(home)
    with opened(home) as memory:
        checks = memory.doctor()
    database = next(check for check in checks if check.name == "truth")
    assert not database.ok
    assert refusal(home / "anaphora.db", "0001", needed) in database.detail
    assert len(checks) > 5
    assert contents(home) == before


def test_sealed_rows_of_an_older_form(tmp_path: Path) -> None:
    """A sealed home whose marker names an older form, or its renewal, is refused at once."""
    pytest.importorskip("cryptography")
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing", encrypt="file") as memory:
        memory.remember("Rafi likes tea")
    marker = json.loads((home / "sealed.json").read_text("utf-8"))
    for older in ({"version": 1}, {"state": "renewing"}):
        (home / "sealed.json").write_text(json.dumps(marker | older), "utf-8")
        before = contents(home)
        with pytest.raises(SchemaTooOld) as refused:
            opened(home)
        assert str(refused.value) == refusal(home / "sealed.json", "1", "2")
        assert contents(home) == before


def test_on_a_server(tmp_path: Path, postgresql_url: str, needed: str) -> None:
    """A database on a server is refused in the same way, before and after it was opened."""
    import psycopg

    with Memory.open(tmp_path / "now", database=postgresql_url, embedder="hashing") as memory:
        memory.remember("Rafi likes tea")
        with psycopg.connect(postgresql_url, autocommit=True) as connection:
            connection.execute("UPDATE anaphora_schema SET version_num = '0014'")
        with pytest.raises(SchemaTooOld):
            memory.remember("one more")
    with (
        Memory.open(tmp_path / "again", database=postgresql_url, embedder="hashing") as memory,
        pytest.raises(SchemaTooOld) as refused,
    ):
        memory.list()
    assert (refused.value.found, refused.value.needed) == ("0014", needed)


def test_its_export_comes_in_whole(tmp_path: Path) -> None:
    """What the build before this one exported is imported, and exported again is the same."""
    shutil.copy(EXPORT, tmp_path / "export.jsonl")
    with opened(tmp_path / "home") as memory:
        report = memory.import_(tmp_path / "export.jsonl")
        assert (report.conversations, report.added, report.problems) == (4, 5, ())
        assert (report.memories_added, report.notes_added, report.gaps_added) == (6, 2, 1)
        assert report.documents_added == 1
        assert [one.text for one in memory.history("alarm.code")] == [
            "The alarm code is 1111", "The alarm code is 2222",
        ]  # fmt: skip
        memory.export(tmp_path / "again.jsonl")
    lines = [json.loads(line) for line in EXPORT.read_text("utf-8").splitlines()]
    again = [
        json.loads(line) for line in (tmp_path / "again.jsonl").read_text("utf-8").splitlines()
    ]
    assert again == lines
