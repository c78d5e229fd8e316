"""What a question may spend: loops end at each limit, and refuse what is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tokens import token_cost

from anaphora import Budget, Memory, Message, Reply
from anaphora.errors import InvalidInput
from anaphora.testing import ScriptedModel

from .deep_desk import loop_over
from .scripts import Timer, block

pytestmark = pytest.mark.internal

LIMITS = ("iterations", "sub_calls", "tokens", "seconds", "dollars")
QUESTION = "Why did we move the queue away from Redis?"
LOOK = block('hits = search("queue Redis", limit=3)\nprint(hits[0]["id"], hits[0]["text"])')
# Dollars a million tokens that make small budgets matter.
DEAR = (1_000.0, 10_000.0)
FREE = Budget(tokens=10**9, seconds=10**6, dollars=None)


class Counting:
    """A model that always writes the same, as long as it may, and says what it costs."""

    name = "counting"

    def __init__(self, prices: tuple[float, float] | None = DEAR) -> None:
        self._inner = ScriptedModel([], prices=prices)
        self.calls = 0
        self.spent_tokens = 0
        self.spent_dollars = 0.0

    def ask(self, messages: Sequence[Message], *, max_output: int, timeout: float) -> Reply:
        assert timeout > 0
        self.calls += 1
        text = LOOK
        taken = sum(token_cost(message.text) + 4 for message in messages)
        price = self.price(taken, max_output)
        self.spent_tokens += taken + max_output
        self.spent_dollars += price or 0.0
        return Reply(text, taken, max_output, price)

    def price(self, input_tokens: int, output_tokens: int) -> float | None:
        return self._inner.price(input_tokens, output_tokens)


@pytest.mark.promise("deep.budgets")
def test_iterations(ferrywell: Memory) -> None:
    """So many programs are run as there are iterations; then the model is asked for its answer."""
    for iterations in (1, 2, 5):
        model = Counting((0.0, 0.0))
        budget = replace(FREE, iterations=iterations)
        result = loop_over(ferrywell, model).run(QUESTION, budget=budget)
        assert [step.kind for step in result.steps] == ["code"] * iterations + ["extraction"]
        assert [step.number for step in result.steps] == list(range(1, iterations + 2))
        assert all(step.output and not step.error for step in result.steps[:-1])
        assert model.calls == iterations + 1
        assert result.cost.iterations == iterations
        assert (result.complete, result.limit) == (False, "iterations")


@pytest.mark.promise("deep.budgets")
@pytest.mark.parametrize("tokens", [0, 500, 3_000, 6_000, 12_000, 30_000])
def test_tokens(ferrywell: Memory, tokens: int) -> None:
    """No call is made that could break the limit of tokens, and what was seen comes back."""
    model = Counting()
    budget = replace(FREE, tokens=tokens)
    result = loop_over(ferrywell, model).run(QUESTION, budget=budget)
    assert model.spent_tokens <= tokens
    assert result.cost.input_tokens + result.cost.output_tokens <= tokens
    assert not result.complete
    if tokens < 30_000:
        assert result.limit == "tokens"
        assert "limit" in [step.kind for step in result.steps]
    # Whoever could look once has something to show.
    assert bool(result.answer) == any(step.output for step in result.steps)


@pytest.mark.promise("deep.budgets")
@pytest.mark.parametrize("dollars", [0.0, 0.5, 3.0, 6.0, 12.0, 30.0])
def test_dollars(ferrywell: Memory, dollars: float) -> None:
    """No call is made that could break the limit in money; a shorter answer is asked for first."""
    model = Counting()
    budget = replace(FREE, dollars=dollars)
    result = loop_over(ferrywell, model).run(QUESTION, budget=budget)
    assert model.spent_dollars <= dollars
    assert result.cost.estimated_dollars == pytest.approx(model.spent_dollars)
    assert (result.complete, result.limit) == (False, "dollars")


@pytest.mark.promise("deep.cost")
def test_an_unknown_price_sets_no_limit(ferrywell: Memory) -> None:
    """Where a price is not known the cost is unknown, not 0, and the other limits hold alone."""
    model = Counting(None)
    result = loop_over(ferrywell, model).run(QUESTION, budget=replace(FREE, dollars=0.001))
    assert model.calls == 6
    assert result.limit == "iterations"
    assert result.cost.estimated_dollars is None
    assert result.cost.code.dollars is None
    assert result.cost.sub.dollars == 0.0


@pytest.mark.promise("deep.budgets")
def test_seconds(ferrywell: Memory, timer: Timer) -> None:
    """When time is up no call is begun, and the best there is comes back with the limit's name."""

    def slowly(messages: Sequence[Message]) -> str:
        del messages
        timer.now += 40.0
        return LOOK

    model = ScriptedModel(slowly)
    loop = loop_over(ferrywell, model, timer=timer)
    result = loop.run(QUESTION, budget=replace(FREE, seconds=100.0))
    # Three calls of 40 s begin before 90 s are gone; nothing begins after 120 s.
    assert len(model.asked) == 3
    assert [limit[1] for limit in model.limits] == [90.0, 50.0, 10.0]
    assert (result.complete, result.limit) == (False, "seconds")
    assert "Redis" in result.answer
    assert result.cost.seconds == pytest.approx(120.0)


@pytest.mark.promise("deep.budgets")
def test_code_cannot_outlast_the_question(ferrywell: Memory) -> None:
    """A program that never ends is stopped with the question's time, not with its own limit."""
    code = ScriptedModel([block("while True:\n    pass"), LOOK])
    budget = replace(FREE, seconds=1.0, execution_seconds=60.0)
    result = loop_over(ferrywell, code).run(QUESTION, budget=budget)
    assert not result.steps[0].output
    assert "over" in (result.steps[0].error or "")
    assert (result.complete, result.limit) == (False, "seconds")
    assert result.cost.seconds < 30.0


@pytest.mark.promise("deep.budgets")
def test_the_last_step_has_a_reserve(ferrywell: Memory, timer: Timer) -> None:
    """Search stops at nine tenths of the time; the answer may use the rest."""

    def slowly(messages: Sequence[Message]) -> str:
        timer.now += 31.0
        last = "JSON" in messages[0].text
        return '{"answer": "Redis lost jobs.", "sources": []}' if last else LOOK

    model = ScriptedModel(slowly)
    loop = loop_over(ferrywell, model, timer=timer)
    result = loop.run(QUESTION, budget=replace(FREE, seconds=100.0))
    assert len(model.asked) == 4
    assert result.answer == "Redis lost jobs."
    assert (result.complete, result.limit) == (False, "seconds")
    assert [step.kind for step in result.steps][-2:] == ["limit", "extraction"]


@pytest.mark.promise("deep.budgets")
def test_sub_calls(ferrywell: Memory) -> None:
    """No more sub-calls are made than allowed; a batch that is too large is not begun."""
    sub = ScriptedModel(lambda _: "yes")
    code = [
        block('print(llm_query("a"))'),
        block('print(llm_query_batched(["b", "c", "d"]))'),
        block('print(llm_query_batched(["b", "a", "b"]))'),
        block('h = search("queue Redis", limit=1)\nsubmit("Jobs were lost.", [h[0]["id"]])'),
    ]
    budget = Budget(sub_calls=3)
    result = loop_over(ferrywell, code, sub).run(QUESTION, budget=budget)
    assert [asked[-1].text for asked in sub.asked] == ["a", "b"]
    assert "the limit of 3 sub-calls is reached: 2 are left" in (result.steps[1].error or "")
    assert result.steps[2].output.strip() == "['yes', 'yes', 'yes']"
    # It answered, but without what it asked for.
    assert result.answer == "Jobs were lost."
    assert (result.complete, result.limit) == (False, "sub_calls")
    assert result.cost.sub_calls == 2


@pytest.mark.promise("deep.budgets")
def test_sub_calls_count_against_tokens(ferrywell: Memory) -> None:
    """A sub-call that would break the limit of tokens is refused in the code, before it is made."""
    sub = ScriptedModel(lambda _: "yes")
    code = [
        block('llm_query("word " * 8000)'),
        block('submit("NOT_FOUND", [])'),
    ]
    result = loop_over(ferrywell, code, sub).run(QUESTION, budget=Budget(tokens=10_000))
    assert not sub.asked
    assert "the limit of 10000 tokens is reached" in (result.steps[0].error or "")
    assert result.limit == "tokens"


@pytest.mark.promise("deep.budgets")
def test_a_refused_answer_is_better_than_none(ferrywell: Memory) -> None:
    """At a limit, a submission that was refused comes back, marked, without the ids that fail."""
    code = ScriptedModel(
        [
            block('h = search("queue Redis", limit=1)\nsubmit("Jobs.", [h[0]["id"], "x#1"])'),
            Reply(LOOK, 10**6, 10, 0.0),
        ]
    )
    result = loop_over(ferrywell, code).run(QUESTION, budget=replace(FREE, tokens=100_000))
    assert result.answer == "Jobs."
    assert len(result.source_ids) == 1
    assert result.unknown_ids == ("x#1",)
    assert (result.complete, result.limit) == (False, "tokens")
    assert "x#1" in result.note


@pytest.mark.promise("deep.budgets")
@pytest.mark.parametrize("name", [*LIMITS, "execution_seconds"])
@pytest.mark.parametrize("value", [-1, float("nan"), "5", True, None])
def test_a_budget_that_is_none(name: str, value: object) -> None:
    """A limit that is not a number, or below zero, is refused by its name, as it is made."""
    if name in {"dollars", "execution_seconds"} and value is None:
        return
    with pytest.raises(InvalidInput, match=f"budget.{name}"):
        Budget(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=f"budget.{name}"):
        replace(Budget(), **{name: value})  # type: ignore[arg-type]


@pytest.mark.promise("deep.budgets")
@pytest.mark.parametrize("value", [{}, {"iterations": 2}, 5, "cheap", Budget])
def test_what_is_no_budget(tmp_path: Path, value: object) -> None:
    """Whoever is given something else as a budget says so, with and without work to do."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.conversations.append_user("c", "A thread.")
        for ask in (
            lambda: memory.deep_recall("Why?", budget=value),  # type: ignore[arg-type]
            lambda: memory.extract("c", budget=value),  # type: ignore[arg-type]
            lambda: memory.dream(budget=value),  # type: ignore[arg-type]
        ):
            with pytest.raises(InvalidInput, match=r"^budget: "):
                ask()
