"""The commands for lasting memories and whole homes, as people and programs use them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def anaphora(*words: str | Path, home: str = "home") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).parent / "anaphora", "--home", tmp_path / home, *words],
            capture_output=True,
            text=True,
            check=False,
            env={"ANAPHORA_EMBEDDER": "hashing", "PATH": "", "HOME": str(tmp_path)},
        )

    return anaphora


def data(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PREFERENCE = (
    "remember",
    "The user prefers vitest over jest.",
    "--path",
    "user.preferences.testing",
    "--payload",
    '{"framework": "vitest"}',
    "--tag",
    "testing",
    "--category",
    "development",
    "--json",
)


@pytest.mark.promise("cli.json")
def test_a_memory_from_the_first_word_to_the_last(run: Run) -> None:
    """Remember, restate, recall by filter, update, look back, forget: as programs see it."""
    first = data(run(*PREFERENCE))
    assert first["action"] == "added"
    again = data(run(*PREFERENCE))
    assert (again["action"], again["id"]) == ("reinforced", first["id"])

    wanted = '{"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}'
    found = data(run("recall", "vitest or jest", "--filters", wanted, "--json"))
    assert [hit["path"] for hit in found["hits"]] == ["user.preferences.testing"]
    hit = found["hits"][0]
    assert hit["payload"] == {"framework": "vitest"}
    product = hit["similarity"] * hit["decay"] * hit["reinforcement"]
    assert hit["score"] == pytest.approx(product, abs=1e-4)

    newer = data(run("update", first["id"], "--text", "The user prefers node:test.", "--json"))
    assert newer["action"] == "superseded"
    listed = data(run("list", "--json"))
    assert [record["text"] for record in listed["items"]] == ["The user prefers node:test."]
    assert data(run("get", first["id"], "--json"))["superseded_by"] == newer["id"]

    forgotten = data(run("forget", newer["id"], "--json"))
    assert forgotten["count"] >= 1
    assert data(run("recall", "what does the user prefer", "--json"))["hits"] == []


def test_a_memory_as_people_see_it(run: Run) -> None:
    """The formula is drawn, secrets are reported, and what still holds the words is named."""
    secret = "the key is AKIA" + "QYLPMN5HHHFPZAM2"
    assert "redacted before storing" in run("remember", secret).stdout
    run("remember", "Rafi owns the staging database.")
    shown = run("recall", "who owns the staging database?", "--why").stdout
    assert "Rafi owns the staging database." in shown
    assert "similarity" in shown
    assert "× decay 1.000 × reinforcement 1.000" in shown
    rejected = run("recall", "staging database", "-k", "1", "--explain").stdout
    assert "rejected:" in rejected


@pytest.mark.promise("contradictions.settled")
def test_a_contradiction_is_shown_settled_and_taken_back(run: Run) -> None:
    """`remember` names what says otherwise and the command that settles it; `reopen` undoes it."""
    old = data(run("remember", "The team deploys on Wednesdays.", "--json"))["id"]
    told = run("remember", "The team deploys on Thursdays.").stdout
    assert f"{old} says otherwise:" in told
    new = told.split()[1]
    assert f"anaphora settle {new} {old}" in told
    shown = run("contradictions").stdout
    assert shown.index("on Wednesdays.") < shown.index("on Thursdays.")
    done = data(run("settle", new, old, "--json"))
    assert (done["verdict"], done["holds"]) == ("replaces", [new])
    assert run("contradictions").stdout.strip() == "no contradictions"
    assert "no longer holds" in run("contradictions", "--settled").stdout
    refused = run("settle", new, old, "--as", "wrong")
    assert refused.returncode == 2
    assert "reopen it" in refused.stderr
    assert data(run("reopen", new, old, "--json"))["holds"] == [old, new]
    assert len(data(run("contradictions", "--json"))) == 1


def test_a_home_is_copied_and_moved(run: Run, tmp_path: Path) -> None:
    """A backup restores elsewhere, an export comes in elsewhere, and neither overwrites."""
    run(*PREFERENCE)
    assert run("backup", tmp_path / "home.backup").returncode == 0
    assert run("export", tmp_path / "home.jsonl").returncode == 0
    assert run("backup", tmp_path / "home.backup").returncode != 0
    assert run("restore", tmp_path / "home.backup", home="restored").returncode == 0
    assert run("restore", tmp_path / "home.backup", home="restored").returncode != 0
    assert run("import", tmp_path / "home.jsonl", home="moved").returncode == 0
    for home in ("restored", "moved"):
        found = data(run("recall", "vitest", "--json", home=home))
        assert found["hits"][0]["text"] == "The user prefers vitest over jest."
        assert data(run("doctor", "--repair", "--json", home=home))["ok"] is True


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["remember", "  "], 2, "text"),
        (["remember", "x", "--type", "magic"], 2, "type"),
        (["remember", "x", "--payload", "[1]"], 2, "payload"),
        (["remember", "x", "--expires", "soon"], 2, "expires"),
        (["recall", "x", "--filters", '{"tags": {"near": 1}}'], 2, "filters.tags.near"),
        (["recall", "x", "--filters", "{"], 2, "filters"),
        (["get", "nothing"], 3, "no memory"),
        (["update", "nothing", "--text", "x"], 3, "no memory"),
        (["update", "nothing"], 2, "nothing to change: give at least one option"),
        (["forget", "nothing"], 3, "no memory"),
        (["forget"], 2, "expected an id or filters"),
        (["reindex", "--embedder", "magic"], 2, "embedder"),
        (["import", "/no/such/file"], 2, "/no/such/file"),
    ],
)
def test_mistakes_are_one_clear_line(run: Run, words: list[str], code: int, says: str) -> None:
    """A mistake gives its exit code and one line that names it, never a traceback."""
    done = run(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert len(done.stderr.strip().splitlines()) == 1
