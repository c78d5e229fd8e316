"""The commands for lasting memories and whole homes, as people and programs use them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.commands import begin_home, is_one_mistake, run_command

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def anaphora(*words: str | Path, home: str = "home") -> subprocess.CompletedProcess[str]:
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "HOME": str(tmp_path),
        }
        return run_command("--home", tmp_path / home, *words, environ=environ)

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


def test_a_memory_as_people_see_it(run: Run) -> None:
    """The formula is drawn, secrets are reported, and what still holds the words is named."""
    secret = "the key is AKIA" + "QYLPMN5HHHFPZAM2"
    assert "redacted before storing" in run("remember", secret).stdout
    run("remember", "Rafi owns the staging database.")
    shown = run("memory", "recall", "who owns the staging database?", "--why").stdout
    assert "Rafi owns the staging database." in shown
    assert "similarity" in shown
    assert "× decay 1.000 × reinforcement 1.000" in shown
    rejected = run("memory", "recall", "staging database", "-k", "1", "--explain").stdout
    assert "rejected:" in rejected


@pytest.mark.promise("contradictions.settled")
def test_a_contradiction_is_shown_settled_and_taken_back(run: Run) -> None:
    """`remember` names what says otherwise and the command that settles it; `reopen` undoes it."""
    old = data(run("remember", "The team deploys on Wednesdays.", "--json"))["id"]
    told = run("remember", "The team deploys on Thursdays.").stdout
    assert f"{old[-8:]} contradicts it:" in told
    short = told.split()[1]
    assert f"anaphora settle {short} {old[-8:]}" in told
    new = next(one["id"] for one in data(run("list", "--json"))["items"] if one["id"] != old)
    shown = run("contradictions").stdout
    (told,) = [line for line in shown.splitlines() if "to settle it" in line]
    _, _, settle = told.partition("anaphora ")
    assert settle.startswith("settle ")
    assert shown.index("on Wednesdays.") < shown.index("on Thursdays.")
    done = data(run("settle", short, old[-8:], "--json"))
    assert (done["verdict"], done["holds"]) == ("replaces", [new])
    assert run("contradictions").stdout.strip() == "no contradictions"
    assert "replaced" in run("contradictions", "--settled").stdout
    refused = run("settle", new, old, "--as", "wrong")
    assert refused.returncode == 2
    assert "reopen it" in refused.stderr
    assert data(run("reopen", new, old, "--json"))["holds"] == [old, new]
    assert len(data(run("contradictions", "--json"))) == 1


def test_a_home_is_copied_and_moved(run: Run, tmp_path: Path) -> None:
    """A backup restores elsewhere, an export comes in elsewhere, and neither overwrites.

    They count as `stats` and `doctor` do: what was replaced is no second memory.
    """
    run(*PREFERENCE)
    run("remember", "The user prefers jest.", "--path", "user.preferences.testing")
    run(*PREFERENCE)
    run("observe", "Tests are written first.")
    assert run("backup", tmp_path / "home.backup").stdout.startswith("0 conversations, 1 memory in")
    exported = run("export", tmp_path / "home.jsonl").stdout
    assert exported.startswith("0 conversations, 1 memory and 2 of the past, 1 note in ")
    assert data(run("stats", "--json"))["memories"] == 1
    assert "1 memory and 2 of the past, 0 without a vector" in run("doctor").stdout
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
        (["memory", "recall", "x", "--filters", '{"tags": {"near": 1}}'], 2, "filters.tags.near"),
        (["memory", "recall", "x", "--filters", "{"], 2, "filters"),
        (["get", "nothing"], 3, "no memory or conversation"),
        (["update", "nothing", "--text", "x"], 3, "no memory"),
        (["update", "nothing"], 2, "nothing to change: give at least one option"),
        (["forget", "nothing"], 3, "no memory"),
        (["forget"], 2, "expected an id or filters"),
        (["reindex", "--embedder", "magic"], 2, "embedder"),
        (["import", "/no/such/file"], 2, "/no/such/file"),
    ],
)
def test_mistakes_are_one_clear_line(
    run: Run, words: list[str], code: int, says: str, tmp_path: Path
) -> None:
    """A mistake gives its exit code and one line that names it, never a traceback."""
    begin_home(tmp_path / "home")
    done = run(*words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    assert is_one_mistake(done.stderr)


@pytest.mark.promise("cli.recall")
def test_one_door_finds_everything_and_says_when_nothing_fits(run: Run, tmp_path: Path) -> None:
    """`recall` gives snippets of all kinds with short ids that other commands take, or silence."""
    chat = tmp_path / "chat.jsonl"
    said = f"{'Filler words. ' * 60}The ferry leaves pier nine at noon."
    chat.write_text(json.dumps({"role": "user", "text": said}) + "\n")
    run("conversation", "import", chat)
    run("remember", "The ferry company is called Blue Pier.", "--tag", "ferry")
    shown = run("recall", "when does the ferry leave pier nine?").stdout
    assert "…" in shown
    assert "leaves pier nine at noon" in shown
    assert "Filler words. Filler words. Filler words. Filler" not in shown
    assert "Filler words. " * 60 in run("recall", "when does the ferry leave?", "--full").stdout
    found = data(run("recall", "the ferry", "--json"))["hits"]
    assert {hit["kind"] for hit in found} == {"memory", "turn"}
    tagged = data(run("recall", "the ferry", "--tag", "ferry", "--json"))["hits"]
    assert [hit["kind"] for hit in tagged] == ["memory"]
    turn = next(hit for hit in found if hit["kind"] == "turn")
    place = next(line for line in shown.splitlines() if "  user  " in line).split()[-2]
    owner = turn["conversation_id"]
    for words in (
        ("get", turn["id"]), ("get", owner[:-2]), ("conversation", "show", place),
        ("conversation", "show", owner[:-2]), ("conversation", "show", owner[2:]),
    ):  # fmt: skip
        assert "pier nine" in run(*words).stdout
    memory = tagged[0]["id"]
    for mistaken, kind in (
        (f"conversation show {memory[-8:]}", "it is a memory"),
        (f"conversation delete {place}", "it is the place of a turn"),
        (f"update {owner} --text x", "it is a conversation"),
        (f"document show {owner}", "it is no document"),
    ):
        refused = run(*mistaken.split())
        assert refused.returncode == 2
        assert kind in refused.stderr
    assert data(run("recall", "the ferry", "--since", "tomorrow", "--json"))["hits"] == []
    assert run("recall", "x", "--since", "soon").returncode == 2
    assert run("recall", "x", "--kind", "magic").returncode == 2
    assert run("recall", "x", "--project", "nobody's").returncode == 3
    assert "no memory at" in run("recall", "x", home="elsewhere").stderr


@pytest.mark.promise("cli.forget")
def test_forgetting_is_asked_for_and_can_be_undone_for_a_day(run: Run) -> None:
    """`--dry-run` changes nothing, "n" changes nothing, undo brings back, `--now` erases."""
    run("remember", "The heron stands in the reeds.", "--tag", "birds")
    (record,) = data(run("list", "--tag", "birds", "--json"))["items"]
    short = record["id"][-8:]
    assert "would forget 1" in run("forget", short, "--dry-run").stdout
    would = data(run("forget", short, "--dry-run", "--json"))
    assert would["memories"] == [{"id": record["id"], "text": record["text"]}]
    assert run("forget", short).returncode == 1
    assert len(data(run("list", "--json"))["items"]) == 1
    told = run("forget", "--tag", "birds", "--yes").stdout
    assert f"undo-forget {short}" in told
    assert data(run("list", "--json"))["items"] == []
    assert "1 memory is back" in run("undo-forget", short).stdout
    assert len(data(run("list", "--json"))["items"]) == 1
    assert "forgot 1" in run("forget", short, "--now", "--yes").stdout
    assert run("undo-forget", short).returncode == 3


@pytest.mark.promise("core.surfaces")
def test_the_core_block_by_commands(run: Run, tmp_path: Path) -> None:
    """Added, pinned by path, moved and taken out; what it is, told to people and to programs."""
    begin_home(tmp_path / "home")
    assert "nothing yet" in run("core", "show").stdout
    first = data(run("core", "add", "I prefer short answers.", "--path", "user.style", "--json"))
    data(run("remember", "Staging is on port 5433.", "--path", "staging.port", "--json"))
    port = data(run("core", "pin", "staging.port", "--json"))
    data(run("core", "move", port["id"][-8:], "1", "--json"))
    found = data(run("core", "show", "--json"))
    assert [one["id"] for one in found["entries"]] == [port["id"], first["id"]]
    assert [one["position"] for one in found["entries"]] == [1, 2]
    shown = run("core", "show").stdout
    assert shown.index("Staging is on port 5433.") < shown.index("I prefer short answers.")
    assert "| I prefer short answers." in run("core", "show", "--block").stdout
    assert "Core block" in run("project", "warm-up").stdout
    assert run("core", "unpin", "user.style").returncode == 0
    assert "prefer" not in run("core", "show").stdout


DASHED = (
    "-5 degrees is the limit.",
    "--port of the server is 80.",
    "- a point of a list",
    "-k 5 x",
)


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize("text", DASHED)
def test_a_text_may_begin_with_a_dash(run: Run, text: str) -> None:
    """No option has a space in it: such a word is a text, before options and behind them."""
    for words in ((text, "--path", "x"), ("--path", "x", text), ("--path", "x", "--", text)):
        data(run("remember", "--json", *words))
    assert {one["text"] for one in data(run("list", "--json"))["items"]} == {text}
    for command in (("recall",), ("memory", "recall"), ("conversation", "recall")):
        assert run(*command, text).returncode == 0
        assert run(*command, text, "--json").returncode == 0
    first = data(run("list", "--json"))["items"][0]
    data(run("update", first["id"], "--text", f"{text} Again.", "--json"))
    data(run("remember", "Tagged.", "--tag", text, "--json"))
    assert [text] in [one["tags"] for one in data(run("list", "--json"))["items"]]
    data(run("observe", "--kind", "fact", text, "--json"))
    data(run("diary", text, "--subject", "x", "--json"))


@pytest.mark.promise("cli.errors")
@pytest.mark.parametrize("command", ["remember", "recall", "forget", "history", "deep"])
def test_a_word_with_a_dash_says_how_to_write_it(run: Run, command: str) -> None:
    """Without a space it may be an option that is none: the message names `--`."""
    done = run(command, "-5")
    assert done.returncode == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert "No such option: -5" in said
    assert "write a text that begins with a dash after `--`" in said
    assert run("remember", "--", "-5").returncode == 0


@pytest.mark.promise("remember.supersedes")
def test_a_path_in_another_case_is_told(run: Run) -> None:
    """As people and as programs see it."""
    run("remember", "The editor is vim.", "--path", "user.editor")
    done = run("remember", "The editor is helix.", "--path", "User.Editor")
    assert "note: kept under the path 'user.editor'" in done.stderr.replace("\n", " ")
    assert (done.stdout + done.stderr).count("'user.editor'") == 1
    told = data(run("remember", "The editor is zed.", "--path", "USER.EDITOR", "--json"))
    assert "'user.editor'" in told["notices"][0]
    assert [one["text"] for one in data(run("list", "--json"))["items"]] == ["The editor is zed."]
    assert "must not end with a dot" in run("remember", "x", "--path", "user.editor.").stderr


@pytest.mark.promise("cli.forget")
def test_an_export_has_nothing_that_was_forgotten(run: Run, tmp_path: Path) -> None:
    """Within the day of grace as after it: words, history, links and notes; `get` says so."""
    first = data(run("remember", "The sky is green.", "--path", "sky", "--json"))
    again = data(run("remember", "The sky is teal.", "--path", "sky", "--json"))
    data(run("remember", "The sea is blue.", "--json"))
    note = data(run("observe", "The sky is watched.", "--kind", "constraint", "--json"))
    for one in (again["id"], note["id"]):
        data(run("forget", one, "--yes", "--json"))
    file = tmp_path / "out.jsonl"
    assert run("export", file).returncode == 0
    written = file.read_text()
    assert "sea is blue" in written
    assert "sky" not in written
    assert first["id"] not in written
    assert "forgotten: yes" in run("get", again["id"]).stdout
    assert run("undo-forget", again["id"]).returncode == 0
    assert run("export", tmp_path / "back.jsonl").returncode == 0
    assert "The sky is green." in (tmp_path / "back.jsonl").read_text()
