"""The loop over a real home with scripted models: steps, mistakes, sub-calls, and its ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.processes import children, end

from anaphora import Budget, DeepStep, Memory
from anaphora.errors import InvalidInput, ModelError, NotFound
from anaphora.features.deep.evidence.questions import first_hits
from anaphora.features.deep.prompts import OUTPUT_CHARS
from anaphora.features.deep.sandbox.base import HostFunction
from anaphora.testing import ScriptedModel
from anaphora.testing.scripted import Scripted

from .conftest import ASKED
from .deep_desk import evidence_of, loop_over
from .scripts import block

pytestmark = pytest.mark.internal

QUESTION = "Why did we move the queue away from Redis?"
GOOD = """hits = search("queue moves from Redis to PostgreSQL", limit=5)
best = [h for h in hits if "SKIP LOCKED" in h["text"]][0]
print(best["id"], best["text"])"""
GIVE_UP = 'submit("NOT_FOUND", [])'
SUBMIT = 'submit("Because jobs were lost.", [best["id"]])'


def submitted(memory: Memory, code: str) -> tuple[str | None, tuple[str, ...]]:
    """What the model is told of one submission, and the sources if it was taken."""
    result = loop_over(memory, [block(code), block('submit("NOT_FOUND", [])')]).run(QUESTION)
    return result.steps[0].error, result.source_ids


@pytest.mark.promise("deep.loop")
def test_an_answer_in_steps(ferrywell: Memory) -> None:
    """A program that searches, looks and submits gives an answer whose sources exist."""
    seen: list[DeepStep] = []
    loop = loop_over(ferrywell, [block(GOOD, "First I look."), block(SUBMIT)])
    result = loop.run(QUESTION, scope="all_sessions", on_step=seen.append)
    assert result.answer == "Because jobs were lost."
    assert result.complete
    assert result.limit is None
    source = evidence_of(ferrywell).within("all_sessions").source(result.source_ids[0])
    assert source is not None
    assert "SKIP LOCKED" in source.text
    assert tuple(seen) == result.steps
    assert [(s.number, s.kind, s.thought) for s in seen] == [
        (1, "code", "First I look."),
        (2, "submit", "I look."),
    ]
    assert "SKIP LOCKED" in seen[0].output
    assert result.cost.iterations == 2
    assert result.cost.code.calls == 2
    assert result.cost.input_tokens == result.cost.code.input > 1000


@pytest.mark.promise("deep.loop")
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's list of processes is read")
@pytest.mark.parametrize("first", [ModelError("scripted", "it is down"), "No code is needed."])
def test_a_sandbox_that_no_code_came_for_is_ended(ferrywell: Memory, first: Scripted) -> None:
    """The sandbox begun beside the model's first call does not outlive a question without code."""
    before = children()
    budget = Budget(iterations=1)
    loop = loop_over(ferrywell, [first, "There is nothing to say."])
    result = loop.run(QUESTION, scope="all_sessions", budget=budget)
    assert not any(step.code for step in result.steps)
    # Ending it means that it was told to: the kernel takes its time.
    assert end(children() - before)


# The seed's own example, its filter as it stands there.
SEED = """import json
results = search("GCCRF implementation details", limit=20)
gccrf = [r for r in results if r["score"] > 0.6]
ordered = results == sorted(results, key=lambda r: -r["score"])
print(json.dumps([[r["id"] for r in gccrf], len(results), ordered]))"""


@pytest.mark.promise("deep.score")
def test_a_program_can_choose_by_score(tmp_path: Path) -> None:
    """`score > 0.6` leaves what is about it, turns and memories alike, and none of the chatter."""
    with Memory.open(tmp_path, clock=lambda: ASKED) as memory:
        store = memory.conversations
        for number in range(12):
            store.append_user("chat", f"Day {number}: more details on the ferry tomorrow.")
        store.append_user("work", "Let us discuss the GCCRF implementation today.")
        store.append_assistant("work", "The GCCRF implementation keeps its details in a table.")
        kept = memory.remember("GCCRF implementation details are in docs/gccrf.md.").id
        for text in ("Ada drinks lapsang.", "Rafi owns staging.", "Deploys are on Thursday."):
            memory.remember(text)
        assert memory.ready(60)
        loop = loop_over(memory, [block(SEED), block(GIVE_UP)])
        result = loop.run("What of GCCRF?", scope="all_sessions")
    assert result.steps[0].error is None
    found, seen, ordered = json.loads(result.steps[0].output)
    assert set(found) == {"work#0", "work#1", f"memory:{kept}"}
    assert seen > len(found)
    assert ordered


@pytest.mark.promise("deep.loop")
def test_later_code_sees_earlier_variables(ferrywell: Memory) -> None:
    """Variables, functions and imports stay from one block to the next."""
    steps = [
        "import re\ndef double(n):\n    return 2 * n\nkept = {'n': 21}",
        "kept['n'] = double(kept['n'])",
        "print(kept['n'], bool(re.search('a', question)))",
        'submit("NOT_FOUND", [])',
    ]
    result = loop_over(ferrywell, [block(step) for step in steps]).run("What about a thing?")
    assert result.steps[2].output.strip() == "42 True"
    assert [step.error for step in result.steps] == [None] * 4


@pytest.mark.promise("deep.loop")
def test_the_model_sees_what_came_of_its_code(ferrywell: Memory) -> None:
    """Output and error of a block are in the next prompt, a long output with its middle cut out."""
    code = ScriptedModel(
        [
            block("for n in range(5000):\n    print('line', n)"),
            block("print(1 / 0)"),
            block('submit("NOT_FOUND", [])'),
        ]
    )
    result = loop_over(ferrywell, code).run(QUESTION)
    second, third = (messages[-1].text for messages in code.asked[1:])
    assert "line 0\n" in second
    assert "characters left out" in second
    assert len(second) < OUTPUT_CHARS + 1000
    assert len(result.steps[0].output) > OUTPUT_CHARS
    assert "ZeroDivisionError" in third
    assert code.asked[2][:4] == (*code.asked[1][:4],)


@pytest.mark.promise("deep.loop")
def test_a_reply_without_code_is_told_so(ferrywell: Memory) -> None:
    """A model that only talks is asked to write a block, and goes on."""
    code = ScriptedModel(["The answer is Redis.", block(GOOD), block(SUBMIT)])
    result = loop_over(ferrywell, code).run(QUESTION, scope="all_sessions")
    assert result.answer == "Because jobs were lost."
    assert result.steps[0].code == ""
    assert result.steps[0].error == "the reply holds no block of code"
    assert "```python" in code.asked[1][-1].text


@pytest.mark.promise("deep.loop")
def test_a_dead_sandbox_is_replaced(ferrywell: Memory) -> None:
    """A block that breaks a limit of the sandbox costs its variables, not the answer."""
    code = ScriptedModel(
        [
            block("kept = 1\nwhile True:\n    pass"),
            block("print(kept)"),
            block(GOOD),
            block(SUBMIT),
        ]
    )
    budget = Budget(execution_seconds=0.3)
    result = loop_over(ferrywell, code).run(QUESTION, scope="all_sessions", budget=budget)
    assert result.answer == "Because jobs were lost."
    assert "0.3 s" in (result.steps[0].error or "")
    assert "your variables are gone" in code.asked[1][-1].text
    assert "NameError" in (result.steps[1].error or "")


@pytest.mark.promise("deep.submission")
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ('submit("", [])', "answer must be a non-empty string (given '')"),
        ("submit(None, [])", "(given None)"),
        ('submit(["a"], [])', "(given a list of 1)"),
        ('submit("x" * 5000, [])', "answer may have at most 4000 characters"),
        ('submit("It was.", [])', "sources is empty"),
        ('submit("It was.")', "sources is empty"),
        ('submit("It was.", "conv#1")', "sources must be a list of ids"),
        ('submit("It was.", [12])', "sources must be a list of ids"),
        ('submit("It was.", ["conv#1", "memory:no"])', "do not exist: 'conv#1', 'memory:no'"),
        ('submit("It was.", ["conv#1"] + ["c#%d" % n for n in range(9)])', "and 5 more"),
        ('submit("NOT_FOUND", ["conv#1"])', "do not exist: 'conv#1'"),
        ("submit()", "missing a required argument: 'answer'; it is submit(answer, sources=())"),
        ('submit("It was.", [], why="x")', "unexpected keyword argument 'why'"),
    ],
)
def test_mistakes_of_a_submission_go_back(ferrywell: Memory, code: str, told: str) -> None:
    """A submission that is not an answer with sources that exist is refused, and told why."""
    error, sources = submitted(ferrywell, code)
    assert error is not None
    assert told in error
    assert sources == ()


@pytest.mark.promise("deep.submission")
def test_ids_must_be_exact(ferrywell: Memory) -> None:
    """An id beside the truth (another number form, a turn beyond the end) is no source."""
    setup = 'best = search("queue Redis", limit=1)[0]["id"]\nc, i = best.split("#")\n'
    for wrong in ('c + "#0" + i', 'c + "#99999"', 'c + "#"', "c", '"#" + i', 'c + "#-1"'):
        error, _ = submitted(ferrywell, f'{setup}submit("It was.", [{wrong}])')
        assert "do not exist" in (error or "")
    assert submitted(ferrywell, f'{setup}submit("It was.", [best])')[0] is None


@pytest.mark.promise("deep.submission")
def test_what_search_gave_counts_as_a_source(ferrywell: Memory) -> None:
    """Whole results are taken for their ids, once each; a number is an answer."""
    code = 'hits = search("queue Redis", limit=2)\nsubmit(7, hits + [hits[0]["id"]])'
    result = loop_over(ferrywell, [block(code)]).run(QUESTION)
    assert result.answer == "7"
    assert len(result.source_ids) == len(set(result.source_ids)) == 2


@pytest.mark.promise("deep.submission")
@pytest.mark.parametrize("said", ["NOT_FOUND", "I could not find anything about that."])
def test_nothing_found_is_no_answer(ferrywell: Memory, said: str) -> None:
    """A model that says there is no answer gives an empty one, complete, with its evidence."""
    code = f'h = search("boat", limit=1)\nsubmit({said!r}, [x["id"] for x in h])'
    result = loop_over(ferrywell, [block(code)]).run("Who bought the boat?")
    assert result.answer == ""
    assert result.complete


@pytest.mark.promise("deep.extraction")
def test_the_last_word_is_an_answer_from_what_was_seen(ferrywell: Memory) -> None:
    """A model that never submits is asked for an answer, and sees outputs, sub-calls and hits."""
    sub = ScriptedModel(["jobs were evicted"])
    source = evidence_of(ferrywell).within("all_sessions").search("queue Redis SKIP LOCKED", 1)[0]
    model = ScriptedModel(code_replies(source.id))
    loop = loop_over(ferrywell, model, sub)
    result = loop.run(QUESTION, scope="all_sessions")
    assert result.answer == "Jobs were evicted."
    assert result.source_ids == (source.id,)
    assert result.unknown_ids == ("conv#9",)
    assert not result.complete
    assert result.limit == "iterations"
    assert [step.kind for step in result.steps] == ["code"] * 5 + ["extraction"]
    shown = model.asked[-1][-1].text
    assert "SKIP LOCKED" in shown
    assert "jobs were evicted" in shown
    assert first_hits(loop.evidence.within("all_sessions"), QUESTION)[0].id in shown
    assert result.cost.iterations == 5


def code_replies(source_id: str) -> list[str]:
    return [
        block(GOOD),
        block('print("so:", llm_query("Why? " + best["text"]))'),
        "no code",
        block("print(len(hits))"),
        block("print(hits[0]['score'])"),
        f'{{"answer": "Jobs were evicted.", "sources": ["{source_id}", "conv#9"]}}',
    ]


@pytest.mark.promise("deep.extraction")
def test_one_iteration_is_one_program(ferrywell: Memory) -> None:
    """With one iteration one program runs, and the answer comes from what it and the seeds saw."""
    model = ScriptedModel([block("print(6 * 7)"), '{"answer": "NOT_FOUND", "sources": []}'])
    loop = loop_over(ferrywell, model)
    result = loop.run(QUESTION, budget=Budget(iterations=1))
    assert [step.kind for step in result.steps] == ["code", "extraction"]
    assert (result.answer, result.limit) == ("", "iterations")
    told, last = model.asked[0][-1].text, model.asked[1][-1].text
    assert "You have 1 iteration left, one block of code each" in told
    assert "42" in last
    assert first_hits(loop.evidence.within(), QUESTION)[0].id in last


@pytest.mark.promise("deep.extraction")
def test_the_model_is_told_how_many_programs_are_left(ferrywell: Memory) -> None:
    """What the prompts count is what is run: five, and then the answer."""
    model = ScriptedModel([*[block("print(1)")] * 5, '{"answer": "NOT_FOUND", "sources": []}'])
    result = loop_over(ferrywell, model).run(QUESTION)
    told = [asked[-1].text for asked in model.asked]
    for left, text in zip((5, 4, 3, 2), told, strict=False):
        assert f"You have {left} iterations left" in text
    assert "You have 1 iteration left" in told[4]
    assert "iteration" not in told[5]
    assert sum(bool(step.code) for step in result.steps) == 5


@pytest.mark.promise("deep.sub_calls")
def test_sub_calls_are_made_once(ferrywell: Memory) -> None:
    """The same prompt twice, in a batch or in a later step, is one call and the same answer."""
    sub = ScriptedModel(lambda messages: messages[-1].text.upper())
    code = [
        block('print(llm_query("one"), llm_query("one"))'),
        block('print(llm_query_batched(["two", "one", "two", "three"]))'),
        block('submit("NOT_FOUND", [])'),
    ]
    result = loop_over(ferrywell, code, sub).run(QUESTION)
    assert result.steps[0].output.strip() == "ONE ONE"
    assert result.steps[1].output.strip() == "['TWO', 'ONE', 'TWO', 'THREE']"
    assert sorted(asked[-1].text for asked in sub.asked) == ["one", "three", "two"]
    assert result.cost.sub_calls == result.cost.sub.calls == 3
    first, second = result.steps[0].sub_calls, result.steps[1].sub_calls
    assert [(c.prompt, c.answer, c.cached) for c in first] == [
        ("one", "ONE", False),
        ("one", "ONE", True),
    ]
    assert [c.prompt for c in second if not c.cached] == ["two", "three"]
    assert [c.prompt for c in second if c.cached] == ["one", "two"]
    assert all((c.tokens == 0) == c.cached for c in (*first, *second))


@pytest.mark.promise("deep.sub_calls")
def test_a_sub_call_that_fails_is_told(ferrywell: Memory) -> None:
    """A failing model is an error of the code alone, a gap in a batch, and asked again later."""
    sub = ScriptedModel([ModelError("sub", "HTTP 500: no"), ModelError("sub", "HTTP 500: no"), "a"])
    code = [
        block('llm_query("one")'),
        block('print(llm_query_batched(["one", "one"]))'),
        block('print(llm_query("one"))'),
        block('submit("NOT_FOUND", [])'),
    ]
    result = loop_over(ferrywell, code, sub).run(QUESTION)
    assert "llm_query: HTTP 500: no" in (result.steps[0].error or "")
    assert "[no answer: HTTP 500: no]" in result.steps[1].output
    assert result.steps[2].output.strip() == "a"
    assert result.complete


@pytest.mark.promise("deep.loop")
def test_one_model_in_both_roles(ferrywell: Memory) -> None:
    """Without a model that reads, the one that writes code answers `llm_query`."""
    model = ScriptedModel(
        [block('print(llm_query("Say x"))'), "x", block('submit("NOT_FOUND",[])')]
    )
    result = loop_over(ferrywell, model).run(QUESTION)
    assert result.steps[0].output.strip() == "x"
    assert (result.cost.code.calls, result.cost.sub.calls) == (2, 1)


@pytest.mark.promise("deep.arguments")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('search("")', "search: query must be a non-empty string (given '')"),
        ("search(3)", "query must be a non-empty string (given 3)"),
        ('search("a" * 3000)', "query may have at most 2000 characters (given 3000)"),
        ('search("a", 0)', "limit must be a whole number from 1 to 100 (given 0)"),
        ('search("a", limit=10**30)', "an integer of more than 64 bits"),
        ('search("a", limit=10**12)', "from 1 to 100 (given 1000000000000)"),
        ('search("a", limit=True)', "(given True)"),
        ('search("a", since="soonish")', 'expected a time such as "2026-03-12"'),
        ('search("a", until="9999-12-31")', "between the years"),
        ('search("a", top_k=3)', "search(query, limit=20, since=None, until=None, speaker=None)"),
        ('search("a", speaker=["x"])', "speaker must be a non-empty string"),
        ('load_transcript("nobody")', "no session with id 'nobody'"),
        ('load_transcript("nobody", 0, 501)', "at most 500 turns in one call"),
        ('load_transcript("nobody", -1)', "start must be a whole number from 0"),
        ("list_sessions(limit=100000)", "limit must be a whole number from 1 to 500"),
        ('llm_query("")', "prompt must be a non-empty string"),
        ('llm_query_batched("ab")', "prompts must be a list of strings (given 'ab')"),
        ('llm_query_batched(["a"] * 65)', "at most 64 prompts in one call"),
        ('llm_query_batched(["a", None])', "prompts[1] must be a non-empty string"),
    ],
)
def test_arguments_are_checked(ferrywell: Memory, call: str, told: str) -> None:
    """A host function tells what is wrong with its arguments, and calls nobody."""
    sub = ScriptedModel([])
    code = [block(call), block('submit("NOT_FOUND", [])')]
    result = loop_over(ferrywell, code, sub).run(QUESTION)
    assert told in (result.steps[0].error or "")
    assert not sub.asked


@pytest.mark.promise("deep.scopes")
def test_scopes(ferrywell: Memory) -> None:
    """Code sees the sessions of its scope and no other, whatever function it asks."""
    names = [one.conversation_id for one in ferrywell.conversations.list()]
    look = f"""print(len(list_sessions()))
for name in {names!r}:
    try:
        print(name, len(load_transcript(name)))
    except Exception as error:
        print(name, "none")
print(sorted(set(h["conversation"] for h in search("the queue and Redis and the pilot", 100))))
print(sorted(set(line.split("#")[0] for line in history.split("\\n"))))"""
    expected = {"all_sessions": 11, "recent_sessions": 10, "current_session": 1}
    for scope, count in expected.items():
        code = [block(look), block('submit("NOT_FOUND", [])')]
        result = loop_over(ferrywell, code).run(
            QUESTION,
            scope=scope,  # type: ignore[arg-type]
            conversation_id=names[3],
            include_memory=False,
        )
        lines = result.steps[0].output.strip().splitlines()
        readable = {line.split()[0] for line in lines[1:-2] if not line.endswith("none")}
        assert lines[0] == str(count)
        assert len(readable) == count
        assert all(name in readable for name in names if f"'{name}'" in lines[-2] + lines[-1])


@pytest.mark.promise("deep.scopes")
def test_a_scope_that_cannot_be(ferrywell: Memory) -> None:
    """A current session that is not given or not known, and an unknown scope, are refused."""
    loop = loop_over(ferrywell, [])
    with pytest.raises(InvalidInput, match="conversation"):
        loop.run(QUESTION, scope="current_session")
    with pytest.raises(NotFound, match="no conversation with id"):
        loop.run(QUESTION, scope="current_session", conversation_id="nobody")
    with pytest.raises(InvalidInput, match="recent_sessions"):
        loop.run(QUESTION, scope="everything")  # type: ignore[arg-type]
    for question in ("", "  ", "x" * 5000, None):
        with pytest.raises(InvalidInput, match="question"):
            ferrywell.deep_recall(question)  # type: ignore[arg-type]


@pytest.mark.promise("deep.scopes")
def test_memories_are_evidence_when_asked_for(ferrywell: Memory) -> None:
    """Memories are found and can be cited; with `include_memory=False` there are none."""
    code = """hits = [h for h in search("Maren wants answers in German") if h["kind"] == "memory"]
print(len(hits))
submit("In German.", [h["id"] for h in hits])"""
    result = loop_over(ferrywell, [block(code)]).run("In which language?")
    assert result.answer == "In German."
    assert result.source_ids[0].startswith("memory:")
    without = loop_over(ferrywell, [block(code), block('submit("NOT_FOUND", [])')])
    result = without.run("In which language?", include_memory=False)
    assert result.steps[0].output.strip() == "0"


@pytest.mark.promise("deep.loop")
def test_the_sandbox_ends_with_the_question(ferrywell: Memory) -> None:
    """Whatever ends a loop, every session of the sandbox is closed."""
    from anaphora.features.deep.sandbox.base import (
        Engine,
        JsonValue,
        SandboxLimits,
        SandboxSession,
        Wall,
    )
    from anaphora.features.deep.sandbox.monty import MontyEngine

    class Watched:
        def __init__(self) -> None:
            self.inner: Engine = MontyEngine()
            self.opened: list[SandboxSession] = []

        def walls(self) -> tuple[Wall, ...]:
            return self.inner.walls()

        def open(
            self,
            inputs: dict[str, JsonValue],
            functions: dict[str, HostFunction],
            limits: SandboxLimits,
        ) -> SandboxSession:
            self.opened.append(self.inner.open(inputs, functions, limits))
            return self.opened[-1]

    def interrupt(step: DeepStep) -> None:
        raise KeyboardInterrupt(step.kind)

    ends: tuple[Scripted, ...] = (block(GIVE_UP), ModelError("m", "gone"), "never code")
    for last in ends:
        engine = Watched()
        script: list[Scripted] = [block("x = 1"), last]
        loop_over(ferrywell, script, engine=engine).run(QUESTION)  # type: ignore[arg-type]
        assert [one.run("print(1)").alive for one in engine.opened] == [False]
    engine = Watched()
    with pytest.raises(KeyboardInterrupt):
        loop_over(ferrywell, [block("x = 1")], engine=engine).run(  # type: ignore[arg-type]
            QUESTION, on_step=interrupt
        )
    assert [one.run("print(1)").alive for one in engine.opened] == [False]
