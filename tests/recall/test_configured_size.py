"""How much a recall of conversations brings: configured, or asked for; long turns whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tokens import token_cost

from anaphora import Memory
from anaphora.errors import InvalidInput, StoreError
from anaphora.testing import run_cli

LONG = "The heron plan. " + " ".join(f"Step {n}: look at nest {n}." for n in range(600))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for number in range(20):
            memory.conversations.append_user("chat", f"The heron was seen at pond {number}.")
        memory.conversations.append_user("long", LONG)
        assert memory.ready(60)
    return tmp_path / "home"


def found(home: Path, **given: Any) -> int:
    with Memory.open(home, embedder="hashing") as memory:
        return len(memory.recall_conversation("chat", "heron pond", **given))


@pytest.mark.promise("recall.configured")
def test_arguments_win_over_variables_and_those_over_the_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even an argument that is the usual default wins."""
    assert found(home) == 6
    (home / "settings.json").write_text(json.dumps({"recall_top_k": 4}))
    assert found(home) == 4
    monkeypatch.setenv("ANAPHORA_RECALL_TOP_K", "9")
    assert found(home) == 9
    assert found(home, top_k=6) == 6
    monkeypatch.setenv("ANAPHORA_RECALL_BUDGET", "20")
    assert found(home) == 2
    assert found(home, budget=2500) == 9
    command = [
        "--home",
        str(home),
        "conversation",
        "recall",
        "heron pond",
        "--in",
        "chat",
        "--json",
    ]
    told = run_cli(*command, env={"ANAPHORA_EMBEDDER": "hashing"})
    assert len(json.loads(told.stdout)["hits"]) == 2, told.output


@pytest.mark.promise("recall.configured")
@pytest.mark.parametrize("name", ["ANAPHORA_RECALL_TOP_K", "ANAPHORA_RECALL_BUDGET"])
def test_what_is_no_size_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable by its name, the home's own by its file."""
    for value in ("many", "-1", "1.5"):
        monkeypatch.setenv(name, value)
        with pytest.raises(InvalidInput, match=name):
            Memory.open(tmp_path)
    monkeypatch.delenv(name)
    for bad in ('"3"', "-1", "true"):
        key = name.removeprefix("ANAPHORA_").lower()
        (tmp_path / "settings.json").write_text(f'{{"{key}": {bad}}}')
        with pytest.raises(StoreError, match=key):
            Memory.open(tmp_path)


@pytest.mark.promise("recall.whole")
def test_a_long_turn_comes_whole_on_request(home: Path) -> None:
    """The best hit in any case; others where they fit. Without it a passage comes."""
    with Memory.open(home, embedder="hashing") as memory:
        part = memory.recall_conversation("long", "heron plan", budget=100)[0]
        assert part.excerpt is not None
        assert len(part.text) < len(LONG)
        hit = memory.recall_conversation("long", "heron plan", budget=100, whole=True)[0]
        assert (hit.text, hit.excerpt) == (LONG, None)
        hits = memory.recall_conversation(
            None, "pond 3 heron plan", whole=True, top_k=30, budget=60
        )
        assert all(one.excerpt is None for one in hits)
        assert sum(token_cost(one.text) for one in hits[1:]) <= 60
