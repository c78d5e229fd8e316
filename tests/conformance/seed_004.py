"""Deep recall: a model writes its own search, in a sandbox, and cites what exists."""

from __future__ import annotations

from typing import Any

from tests.conformance.desk import Desk
from tests.conformance.table import Seed

from anaphora import DeepAnswer, Memory, NewTurn
from anaphora.testing import ScriptedModel

SEED = Seed("004", "deep recall")
row = SEED.row

WEEK = "What did we discuss about GCCRF last week?"


def block(code: str) -> str:
    """A reply that holds this program."""
    return f"I look.\n```python\n{code}\n```"


def submits(answer: str, *sources: str) -> str:
    """A reply whose program submits this."""
    return block(f"submit({answer!r}, {list(sources)!r})")


NOTHING = submits("NOT_FOUND")
DECAYS = submits("It decays.", "s2#0")


def told(memory: Memory) -> Memory:
    """Two sessions about one subject, in a memory that also knows a fact."""
    store = memory.conversations
    store.append_user("s1", "The GCCRF implementation details: it replaces the reward shaping.")
    store.append_assistant("s1", "Noted: GCCRF replaces the reward shaping.")
    store.append_user("s2", "GCCRF changes in March 2026: the curiosity term decays now.")
    memory.remember("The GCCRF formula has five terms.")
    return memory


def asked(
    desk: Desk,
    *replies: str,
    question: str = WEEK,
    embedder: str = "hashing",
    scope: Any = "all_sessions",
    **options: Any,
) -> DeepAnswer:
    """The answer of a scripted model over the two sessions."""
    memory = told(desk.memory(embedder, model=desk.scripted(*replies)))
    return memory.deep_recall(question, scope=scope, **options)


def printed(desk: Desk, code: str, **options: Any) -> str:
    """What a program of the model printed, or the error it ended with."""
    (step, *_) = asked(desk, block(code), NOTHING, **options).steps
    return step.output + (step.error or "")


@row(
    "33",
    "the shortcut is tried first",
    on_purpose="docs/seeds.md#no-shortcut-for-times-orders-and-counts",
)
def shortcut_first(desk: Desk) -> str:
    with desk.memory("minilm", model=(model := desk.scripted(NOTHING))) as memory:
        assert sure(memory, SURE).shortcut
        assert not model.asked
    memory = told(desk.memory("minilm", model=model, home="week"))
    assert not memory.deep_recall(WEEK, scope="all_sessions").shortcut
    assert model.asked
    return "taken where the search is sure; the seed's own question names a time: never"


SURE = "Which orchid fertilizer does Zelda put on the greenhouse orchids?"


def sure(memory: Memory, question: str) -> DeepAnswer:
    """A question about three unmistakable turns in a long thread."""
    weather = [NewTurn("user", f"Day {n}: rain over the harbour, nothing new") for n in range(120)]
    said = [
        NewTurn("user", "Zelda put the orchid fertilizer Florapint on the greenhouse orchids"),
        NewTurn("assistant", "So the greenhouse orchids get orchid fertilizer, Zelda put it on"),
        NewTurn("user", "Yes: orchid fertilizer for the greenhouse orchids, says Zelda, put it on"),
    ]
    memory.conversations.extend("garden", [*weather[:60], *said, *weather[60:]])
    memory.ready(60)
    return memory.deep_recall(question)


@row(
    "34-35, 75",
    "results of 0.8 and more come back directly",
    on_purpose="docs/seeds.md#08-is-a-probability",
)
def threshold(desk: Desk) -> str:
    memory = desk.memory("minilm", model=(model := desk.scripted(NOTHING)))
    for text in (
        "The GCCRF formula has five terms.",
        "The GCCRF formula: five terms in all.",
        "GCCRF is a formula of five terms.",
    ):
        memory.remember(text)
    question = "What are the five terms of the GCCRF formula?"
    scores = [hit.score for hit in memory.recall(question, mode="vector")]
    assert len(scores) == 3
    assert min(scores) >= 0.8
    assert not memory.deep_recall(question, scope="all_sessions").shortcut
    assert model.asked
    return f"three memories of scores {min(scores):.2f} and more: the model is asked"


@row(
    "38, 99",
    "JavaScript: loadTranscript(), listSessions(), console.log()",
    on_purpose="docs/seeds.md#python-instead-of-javascript",
)
def python(desk: Desk) -> str:
    script = '```javascript\nconst r = await search("GCCRF", {limit: 20});\n```'
    answer = asked(desk, script, NOTHING)
    assert not answer.steps[0].output
    assert printed(desk, "loadTranscript('s1')", question=f"{WEEK} 2").count("NameError") == 1
    return "Python, names in snake case; JavaScript counts as no code and the model is told"


@row("67-71", "return {summary, sources}", on_purpose="docs/seeds.md#submit-instead-of-return")
def submitted(desk: Desk) -> str:
    answer = asked(desk, DECAYS)
    assert answer.answer == "It decays."
    assert answer.sources[0].text.startswith("GCCRF changes")
    return "submit(answer, ids); the texts come back in the sources"


@row(
    "85-91",
    "the user's model asks, a cheap one writes the code",
    on_purpose="docs/seeds.md#the-strong-model-writes-the-code",
)
def routed(desk: Desk) -> str:
    code = desk.scripted(block("print(llm_query('how many?'))"), submits("Two.", "s1#0"))
    sub = ScriptedModel(["two"])
    memory = told(desk.memory(model=code, sub_model=sub))
    answer = memory.deep_recall(WEEK, scope="all_sessions")
    assert "two" in answer.steps[0].output
    assert (answer.cost.code.calls, answer.cost.sub.calls) == (2, 1)
    return "model writes the code, sub_model reads; without sub_model one does both"
