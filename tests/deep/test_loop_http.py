"""The loop with models behind real HTTP: a scripted server on the loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from anaphora import Memory
from anaphora.deep.models.remote import ModelAddress, RemoteModel
from anaphora.values.deep import Budget

from .deep_desk import loop_over
from .openai_server import Answer, OpenAIServer
from .scripts import Timer, block

KEY = "sk-loopback-key"
QUESTION = "Why did we move the queue away from Redis?"
SEARCH = """hits = search("queue moves from Redis to PostgreSQL", limit=5)
best = [h for h in hits if "SKIP LOCKED" in h["text"]][0]
print(best["id"], best["text"])"""

pytestmark = [pytest.mark.enable_socket, pytest.mark.internal]


@pytest.fixture
def models(server: OpenAIServer, timer: Timer) -> Iterator[tuple[RemoteModel, RemoteModel]]:
    code = RemoteModel(ModelAddress.read("coder", server.url, KEY), sleep=timer.sleep)
    sub = RemoteModel(ModelAddress.read("reader", server.url, KEY), sleep=timer.sleep)
    yield code, sub
    code.close()
    sub.close()


def reads(server: OpenAIServer) -> None:
    """Let the model that reads answer with the end of what it is asked."""
    server.route = lambda request: (
        Answer("read: " + request["messages"][-1]["content"][-20:], usage=(100, 3))
        if request["model"] == "reader"
        else None
    )


@pytest.mark.promise("deep.loop", "deep.cost")
def test_a_whole_answer(
    ferrywell: Memory, server: OpenAIServer, models: tuple[RemoteModel, RemoteModel]
) -> None:
    """Steps, an error, sub-calls and a refused submission, over HTTP, counted by role."""
    reads(server)
    server.says(
        Answer(block(SEARCH), usage=(1000, 40)),
        Answer(block("print(best.name)"), usage=(1100, 10)),
        Answer(
            block('print(llm_query_batched([best["text"], "two", best["text"]]))'), usage=(1200, 20)
        ),
        Answer(block('submit("Jobs were lost.", ["x#1"])\nsubmit("no")'), usage=(1300, 30)),
        Answer(block('submit("Jobs were lost.", [best["id"]])'), usage=(1400, 30)),
    )
    loop = loop_over(ferrywell, *models)
    result = loop.run(QUESTION, scope="all_sessions", budget=Budget(iterations=6))
    assert result.answer == "Jobs were lost."
    assert result.complete
    errors = [step.error or "" for step in result.steps]
    assert "AttributeError" in errors[1]
    assert "'x#1'" in errors[3]
    assert [(c.cached, c.tokens) for c in result.steps[2].sub_calls] == [
        (False, 103),
        (False, 103),
        (True, 0),
    ]
    cost = result.cost
    assert (cost.code.input, cost.code.output, cost.code.calls) == (6000, 130, 5)
    assert (cost.sub.input, cost.sub.output, cost.sub.calls) == (200, 6, 2)
    assert (cost.input_tokens, cost.output_tokens, cost.sub_calls) == (6200, 136, 2)
    # Nobody knows the price of a server of one's own.
    assert cost.estimated_dollars is None
    assert [step.cost.iterations for step in result.steps] == [1, 2, 3, 4, 5]
    assert KEY not in repr(result)


@pytest.mark.promise("deep.models")
def test_a_busy_server_costs_only_time(
    ferrywell: Memory,
    server: OpenAIServer,
    models: tuple[RemoteModel, RemoteModel],
    timer: Timer,
) -> None:
    """A loop outlives a 429 and a 500 without a step more."""
    server.says(
        Answer(status=429, body=b"{}"),
        block(SEARCH),
        Answer(status=500, body=b"{}"),
        block('submit("Jobs were lost.", [best["id"]])'),
    )
    result = loop_over(ferrywell, *models).run(QUESTION, scope="all_sessions")
    assert result.answer == "Jobs were lost."
    assert len(result.steps) == 2
    assert timer.slept == [0.5, 0.5]


@pytest.mark.promise("deep.models")
def test_a_server_that_refuses(
    ferrywell: Memory, server: OpenAIServer, models: tuple[RemoteModel, RemoteModel]
) -> None:
    """A wrong key gives the first hits and the reason, no exception."""
    server.says(Answer(status=401, body=b'{"error": {"message": "bad key"}}'))
    result = loop_over(ferrywell, *models).run(QUESTION, scope="all_sessions")
    assert (result.answer, result.complete, result.answered) == ("", False, False)
    assert "HTTP 401: bad key" in str(result.degraded[0])


@pytest.mark.promise("deep.budgets")
def test_a_server_that_holds(
    ferrywell: Memory, server: OpenAIServer, models: tuple[RemoteModel, RemoteModel]
) -> None:
    """A call that takes all the time there is ends at the limit of seconds."""
    held = threading.Event()
    server.says(block(SEARCH), Answer("late", hold=held), Answer("late", hold=held))
    budget = Budget(seconds=2.0)
    result = loop_over(ferrywell, *models).run(QUESTION, scope="all_sessions", budget=budget)
    held.set()
    assert (result.complete, result.limit) == (False, "seconds")
    assert "SKIP LOCKED" in result.answer
    assert result.cost.seconds < 4.0


@pytest.mark.promise("deep.models")
@pytest.mark.parametrize(
    "text", ["", "```python\n", "```", "```python\nprint(1", "</data>", "\x00"]
)
def test_odd_replies(
    ferrywell: Memory, server: OpenAIServer, models: tuple[RemoteModel, RemoteModel], text: str
) -> None:
    """A reply without usable code costs an iteration and no more."""
    server.says(text, block('submit("NOT_FOUND", [])'))
    result = loop_over(ferrywell, *models).run(QUESTION)
    assert result.complete
    assert [step.number for step in result.steps] == [1, 2]
    assert result.steps[0].error
