"""The shortcut: where the search is sure, no model is asked; some questions never take it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Clock
from tests.deep.asking import Script, opening, submits
from tests.tokens import token_cost

from anaphora import Memory, NewTurn
from anaphora.deep.evidence.questions import (
    asks_about_the_whole,
    fold_for_erasure,
    question_form,
    says_nothing,
)
from anaphora.deep.recall import BUDGET, NEEDED, SURE
from anaphora.rank.confidence import (
    MEMORY_WEIGHTS,
    TURN_WEIGHTS,
    MemoryMatch,
    TurnMatch,
    memory_confidence,
    turn_confidence,
)

pytestmark = pytest.mark.internal

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results" / "deep_shortcut.json"
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
    assert sum(token_cost(source.text) for source in found.sources) <= BUDGET
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


@pytest.mark.promise("deep.shortcut_never")
@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many times did we order pizza?", "counting"),
        ("How often does Kevin run?", "counting"),
        ("what is the total number of commits", "counting"),
        ("What was the first thing Ada said about Rome?", "order"),
        ("When did Bob last visit the dentist?", "order"),
        ("What did we decide after the meeting?", "order"),
        ("What did I say before the move?", "order"),
        ("What is my most recent address?", "counting"),
        ("When did we move?", "time"),
        ("What date is the wedding?", "time"),
        ("What happened in March?", "time"),
        ("List all cities that Ada visited", "completeness"),
        ("Tell me everything about the project", "completeness"),
        ("Did Ada ever mention a dog?", "completeness"),
        ("What do Ada and Bob have in common?", "completeness"),
        ("Wie oft war Anna in Rom?", "counting"),
        ("Wie viele Katzen hat sie?", "counting"),
        ("Was war zuletzt das Problem?", "order"),
        ("Was geschah nachdem wir umgezogen sind?", "order"),
        ("Wann war das Treffen?", "time"),
        ("Nenne alle Städte", "completeness"),
        ("Combien de fois est-elle allée à Rome ?", "counting"),
        ("Quelle était la première ville ?", "order"),
        ("Quand avons-nous déménagé ?", "time"),
        ("Donne-moi toutes les villes", "completeness"),
        ("¿Cuántas veces fuimos a Roma?", "counting"),
        ("¿Cuál fue la última ciudad?", "order"),
        ("¿Cuándo nos mudamos?", "time"),
        ("Dime todas las ciudades", "completeness"),
    ],
)
def test_questions_about_the_whole_are_read(question: str, kind: str) -> None:
    """Counting, order, time and completeness are seen in four languages, in any case."""
    assert asks_about_the_whole(question) == kind
    assert asks_about_the_whole(question.upper()) is not None


@pytest.mark.parametrize(
    "question",
    [
        "What does Ada drink?",
        "Which sport does Kevin play?",
        "Who is Bob's sister?",
        "Where does Carol live?",
        "What is the error code of the login bug?",
        "Was trinkt Ada gern?",
        "Où habite Carole ?",
        "¿Dónde vive Ana?",
    ],
)
def test_plain_questions_may_take_it(question: str) -> None:
    """A question for one fact is none about the whole."""
    assert asks_about_the_whole(question) is None


@pytest.mark.parametrize(
    ("answer", "nothing"),
    [
        ("", True),
        ("  ... ", True),
        ("I could not find anything about that.", True),
        ("No relevant information was found", True),
        ("There is no mention of a dog in the history.", True),
        ("Es konnte nichts gefunden werden.", True),
        ("Lapsang", False),
        ("She could not find her keys.", False),
        ("No, she is not allergic.", False),
        ("I could not find the date, but she said in May that she moves.", False),
    ],
)
def test_an_answer_that_says_nothing_is_none(answer: str, nothing: bool) -> None:
    """ "Could not find" counts as no answer; a "no" that answers counts as one."""
    assert says_nothing(answer) is nothing


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing(question: str) -> None:
    """A form is its own form already, so that equal keys stay equal, and found words found."""
    assert question_form(question_form(question)) == question_form(question)
    assert fold_for_erasure(fold_for_erasure(question)) == fold_for_erasure(question)


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(
    lambda some: sorted(some, reverse=True)
)


@given(SCORES)
def test_confidence_is_a_probability_that_follows_the_score(scores: list[float]) -> None:
    """Between 0 and 1; of two hits alone in their places, the better is at least as sure."""
    apart = [TurnMatch(score, f"c{at}", 0, 100) for at, score in enumerate(scores)]
    sure = turn_confidence(apart)
    assert all(0.0 <= one <= 1.0 for one in sure)
    assert list(sure) == sorted(sure, reverse=True)
    told = memory_confidence([MemoryMatch(score, 3) for score in scores])
    assert all(0.0 <= one <= 1.0 for one in told)


def test_in_a_short_conversation_being_near_says_nothing() -> None:
    """Everything is near everything in ten turns; in a thousand, three side by side are a sign."""

    def surest(turns: int) -> float:
        return max(turn_confidence([TurnMatch(0.4, "c", at, turns) for at in range(3)]))

    assert surest(10) < surest(1000)


@pytest.mark.promise("deep.shortcut_calibrated")
def test_the_weights_are_those_of_the_measurement() -> None:
    """The weights in use are what the benchmark fits, and its chats 6 to 10 say how good."""
    kept = json.loads(RESULTS.read_text("utf-8"))
    assert tuple(kept["weights"]["turn"]) == pytest.approx(TURN_WEIGHTS, abs=0.1)
    assert tuple(kept["weights"]["memory"]) == pytest.approx(MEMORY_WEIGHTS, abs=0.1)
    assert kept["figures"][f"both: hits at or above {SURE}"] > 0
    assert kept["figures"]["both: share of those that are right"] > SURE - 0.1
    assert NEEDED == 3
