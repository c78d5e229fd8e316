"""How long one run of a model's code may take: by argument, option, variable and tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.deep.asking import TEA, submits, tell
from tests.deep.openai_server import Answer, OpenAIServer
from tests.mcp_client import call, connected, refusal

from anaphora import Budget, Memory
from anaphora.errors import InvalidInput
from anaphora.testing import run_cli

pytestmark = pytest.mark.enable_socket

VARIABLE = "ANAPHORA_EXECUTION_SECONDS"
ENDLESS = "```python\nwhile True:\n    pass\n```"


def reply(request: dict[str, Any]) -> Answer:
    """A program that never ends, and an answer once it was stopped."""
    stopped = "your variables are gone" in json.dumps(request["messages"])
    return Answer(submits("NOT_FOUND") if stopped else ENDLESS)


@pytest.fixture
def settings() -> Iterator[Mapping[str, str]]:
    """The variables of a home whose model is the server above."""
    with OpenAIServer() as server:
        server.route = reply
        yield {"ANAPHORA_MODEL_URL": server.url, "ANAPHORA_EMBEDDER": "hashing"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "user" / "home", embedder="hashing") as memory:
        tell(memory)
    return tmp_path / "user" / "home"


def limit_of(answer: Mapping[str, Any]) -> str:
    """The limit that stopped the first program, in the words of its error."""
    error = str(answer["steps"][0]["error"])
    assert " s" in error, error
    return error


def by_command(home: Path, settings: Mapping[str, str], *words: str) -> str:
    asked = ["--home", str(home), "deep", TEA, "--scope", "all_sessions", "--json", *words]
    done = run_cli(*asked, env=dict(settings))
    assert done.exit_code == 0, done.output
    return limit_of(json.loads(done.stdout))


def by_mcp(home: Path, settings: Mapping[str, str], **arguments: Any) -> str:
    async def scenario() -> dict[str, Any]:
        async with connected(home, settings=settings) as session:
            for wrong in (0, -1, 601, "1"):
                said = await refusal(session, "deep_recall", question=TEA, executionSeconds=wrong)
                assert said.startswith("executionSeconds"), said
            return await call(session, "deep_recall", question=TEA, **arguments)

    return limit_of(anyio.run(scenario)["data"])


@pytest.mark.promise("deep.budgets")
def test_the_command_line_takes_an_option_and_a_variable(
    home: Path, settings: Mapping[str, str]
) -> None:
    """`--execution-seconds` wins over the variable, whatever else of the budget is named."""
    assert "0.3 s" in by_command(home, settings, "--execution-seconds", "0.3")
    variable = {**settings, VARIABLE: "0.4"}
    assert "0.4 s" in by_command(home, variable, "--iterations", "3")
    assert "0.3 s" in by_command(home, variable, "--execution-seconds", "0.3")


@pytest.mark.promise("deep.budgets")
def test_a_tool_takes_an_argument_and_a_variable(home: Path, settings: Mapping[str, str]) -> None:
    """`executionSeconds` wins over the variable, and what is no limit is refused."""
    variable = {**settings, VARIABLE: "0.4"}
    assert "0.4 s" in by_mcp(home, variable)
    assert "0.3 s" in by_mcp(home, variable, executionSeconds=0.3)


@pytest.mark.promise("deep.budgets")
def test_a_program_takes_a_budget_and_a_variable(
    home: Path, settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget without the limit has that of the variable; a variable that is none is refused."""
    for name, value in {**settings, VARIABLE: "0.4"}.items():
        monkeypatch.setenv(name, value)
    with Memory.open(home) as memory:
        for budget, limit in (
            (None, "0.4 s"),
            (Budget(iterations=2), "0.4 s"),
            (Budget(execution_seconds=0.3), "0.3 s"),
        ):
            answer = memory.deep_recall(TEA, scope="all_sessions", budget=budget)
            assert limit in (answer.steps[0].error or "")
    for wrong in ("0", "-1", "soon", "nan", "inf"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InvalidInput, match=VARIABLE):
            Memory.open(home)
