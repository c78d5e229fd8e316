"""Syncing from the command line: two real programs with homes of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands import python

from anaphora.testing import run_cli


def run(home: Path, *words: str, given: str | None = None, code: int = 0) -> str:
    """What `anaphora` prints: to standard output, or where it fails to standard error."""
    done = run_cli(*words, home=home, input=given)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def told(home: Path, *words: str, given: str | None = None) -> Any:
    """The same as JSON."""
    return json.loads(run(home, *words, "--json", given=given))


@pytest.mark.promise("sync.surfaces")
def test_a_week_on_two_machines(tmp_path: Path) -> None:
    """Begin, join, exchange, forget: what one says, the other recalls."""
    remote = tmp_path / "remote"
    remote.mkdir()
    laptop, desktop = tmp_path / "laptop", tmp_path / "desktop"
    run(laptop, "remember", "The staging database listens on port 5433", "--path", "staging.port")
    begun = told(laptop, "sync", "init", str(remote))
    assert begun["project"].startswith("ana_proj_")
    assert "sent 2" in run(laptop, "sync", "now")
    key = run(laptop, "sync", "key")
    joined = told(desktop, "sync", "init", str(remote), "--key-file", "-", given=key)
    assert joined["project"] == begun["project"]
    assert joined["device"] != begun["device"]
    assert told(desktop, "sync", "now") == {
        "sent": 1,
        "received": 2,
        "waiting": 0,
        "conflicts": [],
    }
    run(desktop, "remember", "The staging database listens on port 5439", "--path", "staging.port")
    run(desktop, "sync", "now")
    run(laptop, "sync", "now")
    hits = told(laptop, "recall", "which port is staging on?")
    assert "5439" in json.dumps(hits["hits"][0])
    status = told(laptop, "sync", "status")
    assert set(status["devices"]) == {begun["device"], joined["device"]}
    assert "this one" in run(laptop, "sync", "devices")
    (record,) = told(laptop, "list")["items"]
    run(laptop, "forget", record["id"], "--now", "--yes")
    run(laptop, "sync", "now")
    run(desktop, "sync", "now")
    assert told(desktop, "list")["items"] == []


@pytest.mark.promise("sync.surfaces")
def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    """A folder that is not there, a key that is none, a namespace that is not synced: one line."""
    home, remote = tmp_path / "home", tmp_path / "remote"
    run(home, "remember", "The kettle is blue")
    assert "sync init" in run(home, "sync", "now", code=2)
    assert "not there" in run(home, "sync", "init", str(remote), code=2)
    remote.mkdir()
    words = ("sync", "init", str(remote), "--key-file", "-")
    assert "sync key" in run(home, *words, given="nonsense", code=2)
    run(home, "sync", "init", str(remote))
    remote.rmdir()
    assert "not there" in run(home, "sync", "now", code=1)
    assert "1 entry to be sent" in run(home, "sync", "status")
    run(home, "sync", "leave")
    assert "not synced" in run(home, "sync", "status")


@pytest.mark.promise("sync.surfaces")
def test_a_device_comes_and_goes(tmp_path: Path) -> None:
    """Paired by the code that is printed, listed by its name, verified, removed, rolled back."""
    remote = tmp_path / "remote"
    remote.mkdir()
    laptop, desktop = tmp_path / "laptop", tmp_path / "desktop"
    run(laptop, "remember", "The staging database listens on port 5433", "--path", "staging.port")
    run(laptop, "sync", "init", str(remote), "--name", "laptop")
    words = [*python(), "-m", "anaphora", "--home", str(laptop), "sync", "pair", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as pairing:
        assert pairing.stdout is not None
        code = json.loads("".join(iter(pairing.stdout.readline, "}\n")) + "}")["code"]
        init = ("sync", "init", str(remote), "--join", "--name", "desktop")
        run(desktop, *init, given=f"{code}\n")
        assert pairing.wait(30) == 0
    run(laptop, "sync", "now")
    run(desktop, "sync", "now")
    run(laptop, "sync", "now")
    assert "5433" in run(desktop, "recall", "staging port", "--top-k", "1")
    assert {one["name"] for one in told(laptop, "sync", "devices")} == {"laptop", "desktop"}
    assert "are unchanged" in run(laptop, "sync", "verify")
    (check,) = [one for one in told(laptop, "doctor")["checks"] if one["name"] == "sync"]
    assert check["ok"]
    run(laptop, "sync", "compact")
    snapshot = told(laptop, "stats") and told(laptop, "sync", "status")["last_synced"]
    run(laptop, "remember", "The staging database listens on port 6000", "--path", "staging.port")
    assert told(laptop, "sync", "rollback", snapshot, "--dry-run")["restated"]
    assert "1 stated again" in run(laptop, "sync", "rollback", snapshot, "--yes")
    assert "5433" in run(laptop, "list")
    assert "removed" in run(laptop, "sync", "remove", "desktop", "--yes")
    assert "removed" in run(desktop, "sync", "now", code=1)
