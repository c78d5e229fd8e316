"""`anaphora restore`: what it restores is what the next command with the same settings reads."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import run_command

FACT = "Rafi owns the staging database."


def run(
    *words: object, database: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "ANAPHORA_EMBEDDER": "hashing", **variables}
    if database is not None:
        environ["ANAPHORA_DATABASE"] = database
    return run_command(*words, environ=environ)


def done(*words: object, database: str | None = None, **variables: str) -> str:
    result = run(*words, database=database, **variables)
    assert result.returncode == 0, result.stderr
    return result.stdout


def listed(home: Path, database: str | None = None) -> list[str]:
    return [
        record["text"]
        for record in json.loads(done("--home", home, "list", "--json", database=database))["items"]
    ]


@pytest.fixture
def backup_of(tmp_path: Path) -> Callable[[str | None], Path]:
    """Makes a home with a fact and a turn, on files or a server, and a backup of it."""

    def make(database: str | None) -> Path:
        home, turns = tmp_path / "first", tmp_path / "turns.jsonl"
        turns.write_text(json.dumps({"role": "user", "text": "The pilot begins in April."}) + "\n")
        done("--home", home, "remember", FACT, database=database)
        done("--home", home, "import", turns, database=database)
        done("--home", home, "backup", tmp_path / "team.backup", database=database)
        return tmp_path / "team.backup"

    return make


@pytest.mark.promise("care.restore_settings")
def test_a_server_is_restored_into_the_database_of_the_variable(
    tmp_path: Path, backup_of: Callable[[str | None], Path], new_database: Callable[[], str]
) -> None:
    """The next command with the same variables reads what was restored; no file holds the rows."""
    backup = backup_of(new_database())
    second, home = new_database(), tmp_path / "new"
    done("--home", home, "restore", backup, database=second)
    assert listed(home, second) == [FACT]
    assert "pilot begins in April" in done(
        "--home", home, "recall", "when does the pilot begin?", database=second
    )
    assert not (home / "anaphora.db").exists()
    again = run("--home", tmp_path / "other", "restore", backup, database=second)
    assert (again.returncode != 0, "already contains" in again.stderr) == (True, True)
    assert not (tmp_path / "other").exists()


@pytest.mark.promise("care.restore_settings")
def test_a_server_is_restored_into_files_without_the_variable(
    tmp_path: Path, backup_of: Callable[[str | None], Path], new_database: Callable[[], str]
) -> None:
    """Without the variable the rows lie in the new home, and its commands read them there."""
    backup = backup_of(new_database())
    home = tmp_path / "new"
    done("restore", backup, ANAPHORA_HOME=str(home))
    assert listed(home) == [FACT]
    assert (home / "anaphora.db").exists()


@pytest.mark.promise("care.restore_settings")
def test_files_are_not_restored_where_a_server_would_be_read(
    tmp_path: Path, backup_of: Callable[[str | None], Path], new_database: Callable[[], str]
) -> None:
    """A backup of SQLite with the variable set is refused in words, and the way round works."""
    backup, server, home = backup_of(None), new_database(), tmp_path / "new"
    refused = run("--home", home, "restore", backup, database=server)
    assert refused.returncode == 2
    assert "unset ANAPHORA_DATABASE" in refused.stderr
    assert not home.exists()
    done("--home", home, "restore", backup)
    done("--home", home, "export", tmp_path / "all.jsonl")
    done("--home", tmp_path / "served", "import", tmp_path / "all.jsonl", database=server)
    assert listed(tmp_path / "served", server) == [FACT]


@pytest.mark.promise("care.restore_settings")
def test_conversations_are_not_restored_where_they_would_not_be_read(
    tmp_path: Path, backup_of: Callable[[str | None], Path]
) -> None:
    """Another folder of conversations, by option or variable, is refused; the home's own is not."""
    backup, aside, home = backup_of(None), tmp_path / "aside", tmp_path / "new"
    by_option = run("--home", home, "--conversations-dir", aside, "restore", backup)
    by_variable = run("--home", home, "restore", backup, ANAPHORA_CONVERSATIONS_DIR=str(aside))
    for refused in (by_option, by_variable):
        assert refused.returncode == 2
        assert str(home / "conversations") in refused.stderr
    assert not home.exists()
    done("--home", home, "--conversations-dir", home / "conversations", "restore", backup)
    assert "April" in done("--home", home, "recall", "when does the pilot begin?")


@pytest.mark.promise("care.restore_settings")
@pytest.mark.parametrize(
    "command",
    [("backup", "file"), ("restore", "file"), ("encrypt",), ("decrypt",), ("key", "rotate"),
     ("key", "export", "--raw")],
)  # fmt: skip
def test_a_namespace_is_not_ignored(command: tuple[str, ...], tmp_path: Path) -> None:
    """A command that works on the whole home refuses to be given one namespace of it."""
    home = tmp_path / "home"
    done("--home", home, "--namespace", "team", "remember", FACT)
    refused = run("--home", home, "--namespace", "team", *command)
    assert refused.returncode == 2
    assert "whole home" in refused.stderr
