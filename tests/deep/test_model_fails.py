"""A model that is down, refuses or babbles: the same evidence as without one, and why, at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest
from mcp_types import CallToolResult
from tests.conftest import Clock
from tests.deep.asking import TEA, Script, opening, tell
from tests.mcp_client import connected, text_of

from anaphora import Budget, DeepAnswer, Memory
from anaphora.errors import ModelError, ModelTimeout
from anaphora.testing import ScriptedModel, run_cli
from anaphora.testing.scripted import Scripted

from .scripts import block

KEY = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
FAILING: dict[str, Sequence[Scripted] | Callable[..., Scripted]] = {
    "down": lambda _: ModelError("m", "Connection error."),
    "no key": lambda _: ModelError("m", "HTTP 401: bad key", 401),
    "a key in it": lambda _: ModelError("m", f"bad key {KEY} for {{'password': 'hunter2x'}}"),
    "silent": lambda _: ModelTimeout("m", 90.0),
    "words alone": lambda _: "Certainly! I would be glad to help you with that.",
    "nothing": lambda _: "",
    "broken code": lambda _: block("this is no Python at all"),
    "down after a look": [block("print(1)"), ModelError("m", "HTTP 500: no", 500)],
    "down for the answer": [block("print(1)")] * 5 + [ModelError("m", "HTTP 503", 503)],
    "never an answer": lambda _: block("print('hello')"),
}


def evidence(found: DeepAnswer) -> list[str]:
    return [source.id for source in found.sources]


@pytest.fixture
def without(tmp_path: Path, clock: Clock) -> DeepAnswer:
    """What the question gives where no model is configured."""
    with opening(tmp_path / "without", clock)() as memory:
        tell(memory)
        found = memory.deep_recall(TEA)
        assert found.sources
        return found


@pytest.mark.promise("deep.model_fails")
@pytest.mark.parametrize("how", FAILING)
def test_a_model_that_fails_is_as_none(
    tmp_path: Path, clock: Clock, without: DeepAnswer, how: str
) -> None:
    """The evidence is that of no model; note and `degraded` say why; nothing else is claimed."""
    model = ScriptedModel(FAILING[how], name="m")
    with Memory.open(tmp_path / "home", embedder="hashing", model=model, clock=clock) as memory:
        tell(memory)
        found = memory.deep_recall(TEA)
        assert evidence(found) == evidence(without)
        assert (found.answer, found.complete, found.supported, found.gap_id) == (
            "", False, False, None
        )  # fmt: skip
        assert found.note.startswith("the model m did not answer: ")
        assert "this is the best evidence, not an answer" in found.note
        assert [part.part for part in found.degraded] == ["model"]
        assert found.trace_id is not None
        assert memory.trace(found.trace_id) == found
        assert found.steps
        assert memory.gaps(None) == ()
        assert not memory.deep_recall(TEA).cached
        assert KEY not in str(found)
        assert "hunter2x" not in str(found)


@pytest.mark.promise("deep.model_fails")
def test_a_limit_that_comes_first_still_gives_evidence(
    tmp_path: Path, clock: Clock, without: DeepAnswer
) -> None:
    """A budget in which nothing can be asked says so, and gives what a search finds."""
    script = Script("```python\nprint(1)\n```")
    with opening(tmp_path / "home", clock)(script) as memory:
        tell(memory)
        found = memory.deep_recall(TEA, budget=Budget(tokens=50))
    assert evidence(found) == evidence(without)
    assert (found.answer, found.limit, found.complete) == ("", "tokens", False)
    assert found.note == "nothing was found in time; this is the best evidence, not an answer"


@pytest.mark.promise("deep.model_fails")
def test_an_answer_in_words_counts_after_work(tmp_path: Path, clock: Clock) -> None:
    """A model that has searched, and then answers in no form, has answered: without support."""
    replies = [block("print(search('tea'))")] * 5 + ["Ada drinks lapsang."]
    with Memory.open(
        tmp_path, embedder="hashing", model=ScriptedModel(replies), clock=clock
    ) as memory:
        tell(memory)
        found = memory.deep_recall(TEA)
    assert (found.answer, found.supported, found.degraded) == ("Ada drinks lapsang.", False, ())
    assert found.gap_id is not None


@pytest.mark.promise("deep.model_fails")
def test_a_dream_goes_on_after_babble_and_not_after_silence(tmp_path: Path, clock: Clock) -> None:
    """A babbling model has looked at its gap, once; one that is down is asked about no other."""
    with opening(tmp_path, clock)() as memory:
        tell(memory)
        for question in ("Who flew the zeppelin?", "Who mended the submarine?"):
            assert memory.deep_recall(question).gap_id
    script = Script("I am a teapot.")
    with opening(tmp_path, clock)(script) as memory:
        assert {part.part for part in memory.dream().degraded} == {"model"}
        asked = script.calls
        assert asked == 2 * 6
        memory.dream()
        assert script.calls == asked
    down = Script()
    down.said = ModelError("m", "refused")  # type: ignore[assignment]
    down.model.name = "another"
    with opening(tmp_path, clock)(down) as memory:
        memory.dream()
        assert down.calls == 1
        assert len(memory.gaps()) == 2


# The surfaces.

NOWHERE = {"ANAPHORA_MODEL_URL": "http://127.0.0.1:9/v1", "ANAPHORA_EMBEDDER": "hashing"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "user" / "home", embedder="hashing") as memory:
        tell(memory)
    return tmp_path / "user" / "home"


@pytest.mark.promise("deep.model_fails")
@pytest.mark.enable_socket
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_on_the_command_line_why_comes_first(home: Path, as_json: bool) -> None:
    """The first line says why, the evidence follows, and the exit code is not 0."""
    words = ["--home", str(home), "deep", TEA, *(["--json"] if as_json else [])]
    done = run_cli(*words, env=NOWHERE)
    assert done.exit_code == 5, done.output
    if as_json:
        found = json.loads(done.stdout)
        assert found["note"].startswith("the model openai:default@")
        assert found["sources"]
        return
    first, *rest = done.stdout.splitlines()
    assert first.startswith("the model openai:default@")
    assert "did not answer" in first
    assert "best evidence, not an answer" in first
    assert any("lapsang" in line for line in rest)
    assert "nothing was found" not in done.stdout


@pytest.mark.promise("deep.model_fails")
def test_over_mcp_why_comes_first(home: Path) -> None:
    """Above all evidence the text says why, and the structured form has the evidence."""

    async def scenario() -> CallToolResult:
        async with connected(home, settings=NOWHERE) as session:
            result = await session.call_tool("deep_recall", {"question": TEA})
        assert isinstance(result, CallToolResult)
        return result

    result = anyio.run(scenario)
    assert not result.is_error
    first, why = text_of(result).splitlines()[:2]
    assert first.startswith("No answer, but the best evidence: 4 places.")
    assert why.startswith("|- note: the model openai:default@")
    found = result.structured_content["data"]
    assert [part["part"] for part in found["degraded"]] == ["model"]
    assert found["gap_id"] is None
    assert "tea#0" in {source["id"] for source in found["sources"]}


@pytest.mark.promise("deep.no_model")
def test_without_a_model_why_comes_first_too(home: Path) -> None:
    """Nothing has failed: the exit code is 0, and the first line says what to set."""
    done = run_cli("deep", TEA, home=home, env={"ANAPHORA_EMBEDDER": "hashing"})
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("no model is configured: this is the best evidence")
