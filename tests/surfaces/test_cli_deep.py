"""The commands of deep recall, as people and programs use them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.deep.asking import Script, finds, submits, tell
from tests.deep.openai_server import Answer, OpenAIServer

from anaphora import Memory, Message
from anaphora.errors import ModelError
from anaphora.testing import CliResult, run_cli

pytestmark = pytest.mark.enable_socket

Run = Callable[..., CliResult]
TEA = "What does Ada drink in total?"


@pytest.fixture
def script() -> Script:
    return Script(finds("Ada lapsang tea"))


@pytest.fixture
def run(tmp_path: Path, script: Script) -> Iterator[Run]:
    """Runs a command in this process, on a home whose model is the script, behind a server."""

    def reply(request: dict[str, Any]) -> Answer:
        messages = [Message(one["role"], one["content"]) for one in request["messages"]]
        try:
            return Answer(script.model.ask(messages, max_output=1_000, timeout=60).text)
        except ModelError as error:
            body = json.dumps({"error": {"message": error.reason}})
            return Answer(status=400, body=body.encode())

    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        tell(memory)
    with OpenAIServer() as server:
        server.route = reply
        settings = {"ANAPHORA_MODEL_URL": server.url, "ANAPHORA_EMBEDDER": "hashing"}

        def anaphora(*words: str) -> CliResult:
            return run_cli(*words, home=tmp_path / "home", env=settings)

        yield anaphora


def data(done: CliResult) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.promise("cli.deep")
def test_a_question_its_trace_and_its_answer_again(run: Run) -> None:
    """`deep` answers with sources and cost; `--trace` shows steps; `--show` shows them again."""
    shown = run("deep", TEA, "--trace", "--tokens", "50000")
    assert shown.exit_code == 0, shown.output
    assert "│ hits = " in shown.stdout
    assert "Noted: lapsang" in shown.stdout or "Ada drinks lapsang" in shown.stdout
    assert "tokens" in shown.stdout
    again = data(run("deep", TEA.lower(), "--json"))
    assert (again["cached"], again["supported"]) == (True, True)
    assert again["sources"][0]["id"].startswith("tea#")
    listed = data(run("deep", "--traces", "--json"))
    assert [one["question"] for one in listed] == [TEA]
    assert TEA in run("deep", "--traces").stdout
    trace = run("deep", "--show", listed[0]["id"])
    assert "│ hits = " in trace.stdout
    assert data(run("deep", "--show", listed[0]["id"], "--json"))["steps"][0]["kind"] == "submit"
    cached = run("deep", TEA)
    assert "from the cache" in cached.stdout


@pytest.mark.promise("cli.deep")
def test_with_json_steps_go_to_the_other_stream(run: Run) -> None:
    """`--trace --json` leaves standard output to the answer."""
    done = run("deep", TEA, "--trace", "--json")
    assert json.loads(done.stdout)["question"] == TEA
    assert "│ hits = " in done.stderr


@pytest.mark.promise("cli.deep")
def test_gaps_and_the_dream_that_closes_them(run: Run, script: Script) -> None:
    """What was not found is listed as a gap, and a dream reports that it is closed."""
    script.said = submits("NOT_FOUND")
    missed = run("deep", TEA)
    assert "nothing was found" in missed.stdout
    assert "noted as an open question" in missed.stdout
    (gap,) = data(run("gaps", "--json"))
    assert (gap["question"], gap["status"], gap["priority"]) == (TEA, "open", 0.85)
    assert TEA in run("gaps").stdout
    assert "still open" in run("dream").stdout
    script.said = finds("Ada lapsang tea")
    again = run("deep", TEA)
    assert again.exit_code == 0
    assert run("gaps").stdout.strip() == "no open gaps"
    assert "closed by tea#" in run("gaps", "--status", "closed").stdout
    report = data(run("dream", "--json"))
    assert report["explored"] == []
    assert "explored 0 gaps without a model" in run("dream", "--no-model").stdout
    assert run("dream", "--queued").exit_code == 0


@pytest.mark.promise("cli.deep")
def test_facts_are_extracted_and_shown(run: Run, script: Script) -> None:
    """`extract` shows what it took and refused, and why it did nothing the second time."""
    script.said = json.dumps(
        [
            {"fact": "Bob lives in Ghent.", "turns": [2]},
            {"fact": "Carol flies.", "turns": [88]},
        ]
    )
    done = run("extract", "tea")
    assert "1 fact added, 0 reinforced, 1 refused" in done.stdout
    assert "Bob lives in Ghent." in done.stdout
    assert "Carol flies." in done.stdout
    assert "nothing new" in run("extract", "tea").stdout
    assert data(run("extract", "tea", "--json"))["skipped"] == "unchanged"


@pytest.mark.promise("deep.extract_again", "deep.model_fails")
def test_a_model_that_fails_has_a_code(run: Run, script: Script, tmp_path: Path) -> None:
    """`extract` says what was wrong with a reply, `dream` and `deep` with the model: none is 0."""
    script.said = "Sorry?"
    done = run("extract", "tea")
    assert done.exit_code == 5
    assert (
        "tea: ended early, the model's reply was not a list of facts" in done.stdout.splitlines()[0]
    )
    assert run("extract", "tea", "--json").exit_code == 5
    assert run("deep", TEA).exit_code == 5
    script.said = submits("NOT_FOUND")
    assert run("deep", TEA).exit_code == 0
    script.said = ModelError("scripted", "refused")  # type: ignore[assignment]
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.conversations.append_user("tea", "Ada drinks coffee in total, these days.")
    dreamt = run("dream")
    assert dreamt.exit_code == 5
    assert "did not answer" in dreamt.stderr
    assert "refused" in dreamt.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("deep",), 2),
        (("deep", "x", "--scope", "everywhere"), 2),
        (("deep", "--show", "nothing"), 3),
        (("extract", "nothing"), 3),
        (("gaps", "--status", "half"), 2),
    ],
)
def test_what_cannot_be_done_has_a_code(run: Run, words: tuple[str, ...], code: int) -> None:
    """Errors are typed: the program turns them into exit codes that scripts can use."""
    done = run(*words)
    assert done.exit_code == code, done.output
