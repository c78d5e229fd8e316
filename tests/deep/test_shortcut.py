"""The shortcut: where the search is sure, no model is asked; some questions never take it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import Script, opening, submits
from tests.tokens import token_cost

from anaphora import Memory, NewTurn

ASKED = "Which orchid fertilizer does Zelda put on the greenhouse orchids?"


@pytest.fixture
def script() -> Script:
    return Script(submits("NOT_FOUND"))


def greenhouse(memory: Memory) -> None:
    """A long thread in which three turns, side by side, say the same unmistakable thing."""
    weather = [NewTurn("user", f"Day {n}: rain over the harbour, nothing new") for n in range(120)]
    told = [
        NewTurn("user", "Zelda put the orchid fertilizer Florapint on the greenhouse orchids"),
        NewTurn(
            "assistant", "So the greenhouse orchids get orchid fertilizer, and Zelda put it on"
        ),
        NewTurn("user", "Yes: orchid fertilizer for the greenhouse orchids, says Zelda, put it on"),
    ]
    memory.conversations.extend("garden", [*weather[:60], *told, *weather[60:]])
    assert memory.ready(60)


@pytest.mark.promise("deep.shortcut")
def test_a_sure_search_is_the_answer(tmp_path: Path, clock: Clock, script: Script) -> None:
    """With three sure hits the evidence comes back itself, with its neighbours, at no cost."""
    with opening(tmp_path, clock)(script) as memory:
        greenhouse(memory)
        found = memory.deep_recall(ASKED)
    assert (found.shortcut, found.complete, found.supported) == (True, True, True)
    assert script.calls == 0
    assert found.cost.input_tokens == 0
    ids = [source.id for source in found.sources]
    assert {"garden#60", "garden#61", "garden#62", "garden#59", "garden#64"} <= set(ids)
    assert [source.index for source in found.sources] == sorted(
        source.index or 0 for source in found.sources
    )
    assert "Florapint" in found.answer
    assert "garden#60" in found.answer
    assert sum(token_cost(source.text) for source in found.sources) <= 2_500
    assert [step.kind for step in found.steps] == ["shortcut"]


@pytest.mark.promise("deep.shortcut")
def test_without_sure_hits_the_model_looks(tmp_path: Path, clock: Clock, script: Script) -> None:
    """One good hit among noise is not enough: the model is asked."""
    with opening(tmp_path, clock)(script) as memory:
        greenhouse(memory)
        found = memory.deep_recall("Who told us about the harbour?")
    assert not found.shortcut
    assert script.calls == 1


@pytest.mark.promise("deep.shortcut_never")
def test_the_same_question_over_the_whole_goes_deep(
    tmp_path: Path, clock: Clock, script: Script
) -> None:
    """How often, first, when: however sure the hits are, three of them cannot say."""
    with opening(tmp_path, clock)(script) as memory:
        greenhouse(memory)
        for asked in (
            "How often did Zelda put orchid fertilizer on the greenhouse orchids?",
            "When did Zelda first put orchid fertilizer on the greenhouse orchids?",
            "List all orchid fertilizer Zelda put on the greenhouse orchids",
        ):
            assert not memory.deep_recall(asked).shortcut
    assert script.calls == 3
