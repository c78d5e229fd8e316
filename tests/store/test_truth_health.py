"""What is told about the database agrees with what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.sqlite_driver import IS_SAFE, JOURNAL, dbapi2

from anaphora.store.db.engine import Database, open_database
from anaphora.store.db.health import check_truth
from anaphora.store.db.revision import REVISION
from anaphora.store.threads.sidecar import Sidecar, TurnNote

pytestmark = pytest.mark.internal


def test_a_sound_database(truth: Database) -> None:
    """A database in order has its schema's revision, a version, and no problems."""
    Sidecar(truth, "default").note_turns([TurnNote("c", 0, "hash")])
    health = check_truth(truth)
    assert health.problems == ()
    assert health.revision == REVISION
    assert health.location == truth.location
    if truth.path is not None:
        assert (health.kind, health.journal, health.wal_is_safe) == ("sqlite", JOURNAL, IS_SAFE)
        assert health.version.startswith(f"{dbapi2.sqlite_version} of ")
        assert health.bytes == truth.path.stat().st_size
    else:
        assert health.kind == "postgresql"
        assert health.version.startswith("18")


def test_a_home_that_is_not_there_yet(tmp_path: Path) -> None:
    """Looking at a home before its first write finds nothing wrong, and makes nothing."""
    health = check_truth(open_database(tmp_path / "truth.db"))
    assert (health.revision, health.bytes, health.problems) == (None, None, ())
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_database(tmp_path: Path) -> None:
    """A damaged database is told as a problem that names the file."""
    path = tmp_path / "truth.db"
    path.write_bytes(b"This was a diary.\n" * 1_000)
    (problem,) = check_truth(open_database(path)).problems
    assert str(path) in problem


def test_a_lost_parent(tmp_path: Path) -> None:
    """Rows that another program left without their record are told."""
    path = tmp_path / "truth.db"
    open_database(path).ensure()
    connection = dbapi2.connect(str(path))
    connection.execute("INSERT INTO vector VALUES ('default', 'gone', 'e', 0, 'h', x'00', 1)")
    connection.commit()
    connection.close()
    (problem,) = check_truth(open_database(path)).problems
    assert "record" in problem
    assert "vector" in problem


def test_looking_imports_no_sqlalchemy(tmp_path: Path) -> None:
    """A look at a sound SQLite database starts as fast as any other plain read."""
    path = tmp_path / "truth.db"
    open_database(path).ensure()
    script = (
        "import sys; from anaphora.store.db.engine import open_database;"
        "from anaphora.store.db.health import check_truth;"
        "assert not check_truth(open_database(sys.argv[1])).problems;"
        "assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script, str(path)], check=True)
