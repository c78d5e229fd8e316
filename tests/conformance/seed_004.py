"""Deep recall: a model writes its own search, in a sandbox, and cites what exists."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conformance.desk import Desk
from tests.conformance.table import Seed
from tests.processes import children, end

from anaphora import Memory
from anaphora.deep.evidence.questions import seed_queries
from anaphora.deep.models.remote import ModelAddress, RemoteModel
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.values.conversations import NewTurn
from anaphora.values.deep import Budget, DeepAnswer

SEED = Seed("004", "deep recall")
row = SEED.row

WEEK = "What did we discuss about GCCRF last week?"


def block(code: str) -> str:
    """A reply that holds this program."""
    return f"I look.\n```python\n{code}\n```"


def submits(answer: str, *sources: str) -> str:
    """A reply whose program submits this."""
    return block(f"submit({answer!r}, {list(sources)!r})")


def told(memory: Memory) -> Memory:
    """Two sessions about one subject, in a memory that also knows a fact."""
    store = memory.conversations
    store.append_user("s1", "The GCCRF implementation details: it replaces the reward shaping.")
    store.append_assistant("s1", "Noted: GCCRF replaces the reward shaping.")
    store.append_user("s2", "GCCRF changes in March 2026: the curiosity term decays now.")
    memory.remember("The GCCRF formula has five terms.")
    return memory


def asked(desk: Desk, *replies: str, question: str = WEEK, **options: object) -> DeepAnswer:
    """The answer of a scripted model over the two sessions."""
    memory = told(desk.memory(model=desk.scripted(*replies)))
    return memory.deep_recall(question, scope="all_sessions", **options)  # type: ignore[arg-type]


def printed(desk: Desk, code: str) -> str:
    """What a program of the model printed, or the error it ended with."""
    (step, *_) = asked(desk, block(code), submits("NOT_FOUND")).steps
    return step.output + (step.error or "")


@row("18", "a model writes and runs its own search over history and memories")
def searches(desk: Desk) -> str:
    code = "hits = search('GCCRF', limit=9)\nprint([h['kind'] for h in hits])"
    answer = asked(desk, block(code), submits("It replaces the reward shaping.", "s1#0"))
    assert answer.answer == "It replaces the reward shaping."
    assert [source.id for source in answer.sources] == ["s1#0"]
    assert "memory" in answer.steps[0].output
    assert "turn" in answer.steps[0].output
    return "turns and memories seen; the answer cites s1#0"


@row(
    "33",
    "the shortcut is tried first",
    on_purpose=("docs/decisions/0015-deep-recall.md", "shortcut"),
)
def shortcut_first(desk: Desk) -> str:
    memory = desk.memory(model=(model := desk.scripted(submits("NOT_FOUND"))))
    answer = sure(memory, "Which orchid fertilizer does Zelda put on the greenhouse orchids?")
    assert answer.shortcut
    assert not model.asked
    return "taken where the search is sure; never for times, orders, counts"


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
    on_purpose=("docs/decisions/0015-deep-recall.md", "probability"),
)
def threshold(desk: Desk) -> str:
    memory = told(desk.memory(model=(model := desk.scripted(submits("NOT_FOUND")))))
    memory.deep_recall("What are the five terms of the formula?", scope="all_sessions")
    assert model.asked
    return "0.8 is a calibrated probability, not a score"


@row("37", "the prompt, and the history as a variable")
def history_variable(desk: Desk) -> str:
    assert "GCCRF" in printed(desk, "print(history)\nprint(question)")
    return "history and question are there"


@row("38", "JavaScript", on_purpose=("docs/sandbox.md", "Python"))
def python(desk: Desk) -> str:
    script = "```javascript\nconsole.log(1)\n```"
    answer = asked(desk, script, submits("NOT_FOUND"))
    assert not answer.steps[0].output
    return "Python; a block of JavaScript counts as no code and the model is told"


@row("39", "runs searches, loads transcripts")
def loads(desk: Desk) -> str:
    code = "print(len(search('GCCRF')), [t['id'] for t in load_transcript('s1')])"
    assert "['s1#0', 's1#1']" in printed(desk, code)
    return "search and load_transcript"


@row("40-41", "results come back; the search is refined")
def refined(desk: Desk) -> str:
    answer = asked(
        desk,
        block("hits = [h for h in search('GCCRF') if h['kind'] == 'turn']"),
        block("print(sorted(h['id'] for h in hits))"),
        submits("Done.", "s2#0"),
    )
    assert "s2#0" in answer.steps[1].output
    return "what the first program kept, the second one used"


@row("42, 102", "up to five iterations")
def iterations(desk: Desk) -> str:
    for allowed in (5, 1):
        answer = asked(desk, block("print(1)"), budget=Budget(iterations=allowed))
        programs = [step for step in answer.steps if step.kind == "code"]
        assert len(programs) == allowed, f"{len(programs)} programs of {allowed}"
        desk.later(hours=2)
    return "a model that never submits: five programs of five, one of one"


@row("43-44", "a final answer, formatted with its sources")
def formatted(desk: Desk) -> str:
    answer = asked(desk, submits("It decays.", "s2#0", "made-up#9"), submits("It decays.", "s2#0"))
    assert answer.supported
    assert answer.sources[0].text.startswith("GCCRF changes")
    return "ids exist; one that was made up is refused"


@row("52-55", "words and meaning, across sessions, in time, chained")
def combined(desk: Desk) -> str:
    code = (
        "import re\n"
        "early = search('GCCRF', until='2026-01-01')\n"
        "late = [h for h in search('GCCRF', since='2026-01-01') if h['kind'] == 'turn']\n"
        "print(len([h for h in early if h['kind'] == 'turn']))\n"
        "print(sorted({h['conversation'] for h in late if re.search('GCCRF', h['text'])}))"
    )
    seen = printed(desk, code)
    assert seen.startswith("0")
    assert "['s1', 's2']" in seen
    return "since, until, re and two searches joined"


@row("59-65", "the example: search(q, limit), keep score > 0.6, look at created_at")
def example(desk: Desk) -> str:
    memory = desk.memory("minilm", model=desk.scripted(
        block(
            "hits = search('GCCRF implementation details', limit=20)\n"
            "good = [h for h in hits if h['score'] > 0.6]\n"
            "print(sorted({h['kind'] for h in good}), [h['ts'][:10] for h in good])\n"
            "scores = [h['score'] for h in hits]\n"
            "print(scores == sorted(scores, reverse=True), max(scores) <= 1)"
        ),
        submits("NOT_FOUND"),
    ))  # fmt: skip
    answer = told(memory).deep_recall(WEEK, scope="all_sessions")
    seen = answer.steps[0].output
    assert "'turn'" in seen
    assert seen.count("True") == 2
    return "one scale of 0 to 1, best first: " + seen.splitlines()[0]


@row(
    "67-71",
    "return {summary, sources}",
    on_purpose=("docs/tutorial.md", "submit(f"),
)
def submitted(desk: Desk) -> str:
    assert asked(desk, submits("It decays.", "s2#0")).answer == "It decays."
    return "submit(answer, ids); the texts come back in the sources"


@row("77-83", "three results or more; it must not always fire")
def not_always(desk: Desk) -> str:
    memory = desk.memory(model=(model := desk.scripted(submits("NOT_FOUND"))))
    assert not sure(memory, "Who told us about the harbour?").shortcut
    assert model.asked
    return "one good hit among noise: the model is asked"


@row(
    "85-91",
    "the user's model and a cheap one",
    on_purpose=("docs/how-to/local-model.md", "sub"),
)
def routed(desk: Desk) -> str:
    code = desk.scripted(block("print(llm_query('how many?'))"), submits("Two.", "s1#0"))
    sub = ScriptedModel(["two"])
    memory = told(desk.memory(model=code, sub_model=sub))
    answer = memory.deep_recall(WEEK, scope="all_sessions")
    assert "two" in answer.steps[0].output
    assert answer.cost.sub.calls == 1
    return "model writes the code, sub_model reads"


@row("98", "no process, require, fs or network")
def isolated(desk: Desk) -> str:
    for place, code in enumerate(
        (
            "open('/etc/passwd')",
            "import os\nos.environ",
            "import socket",
            "__import__('os').system('id')",
        )
    ):
        memory = desk.memory(model=desk.scripted(block(code), submits("NOT_FOUND")))
        told(memory)
        step = memory.deep_recall(f"{WEEK} {place}", scope="all_sessions").steps[0]
        assert step.error, code
    return "open, os.environ, socket, __import__: each refused"


@row("64", "a row has created_at, the time of its turn or memory")
def created_at(desk: Desk) -> str:
    code = (
        "from datetime import datetime\n"
        "hits = search('GCCRF')\n"
        "turns = load_transcript('s1')\n"
        "print(sorted({h['kind'] for h in hits}))\n"
        "print(all(r['created_at'] == r['ts'] != '' for r in hits + turns))\n"
        "print(datetime.fromisoformat(turns[0]['created_at']).strftime('%Y-%m-%d'))"
    )
    kinds, same, day = printed(desk, code).splitlines()
    assert (kinds, same) == ("['memory', 'turn']", "True")
    thread = desk.memory().conversations.get("s1")
    assert thread is not None
    assert day == f"{thread.turns[0].ts:%Y-%m-%d}"
    return f"for turns and memories, beside ts: {day}"


@row("99", "search(), loadTranscript(), listSessions(), console.log()")
def functions(desk: Desk) -> str:
    seen = printed(desk, "print([s['id'] for s in list_sessions()], len(load_transcript('s1')))")
    assert "s1" in seen
    return "search, load_transcript, list_sessions, print; also llm_query and submit"


@row("100", "a time limit for each execution")
def time_limit(desk: Desk) -> str:
    budget = Budget(execution_seconds=1.0)
    answer = asked(desk, block("while True: pass"), submits("NOT_FOUND"), budget=budget)
    assert answer.steps[0].error
    return answer.steps[0].error


@row("100 set", "the limit is set on the command line, by a variable, over MCP, in Python and REST")
def time_limit_set(desk: Desk) -> str:
    with told(desk.memory()):
        pass
    memory = desk.memory(model=desk.scripted(block("while True: pass"), submits("NOT_FOUND")))
    answer = memory.deep_recall(WEEK, scope="all_sessions", budget=Budget(execution_seconds=0.3))
    assert "0.3 s" in (answer.steps[0].error or "")
    help_text = desk.anaphora("deep", "--help", COLUMNS="200").stdout
    assert "--execution-seconds" in help_text
    refused = desk.anaphora("deep", WEEK, ANAPHORA_EXECUTION_SECONDS="soon")
    assert refused.returncode == 2
    assert "ANAPHORA_EXECUTION_SECONDS" in refused.stderr
    assert desk.mcp("deep_recall", query=WEEK, executionSeconds=0.3)["success"]
    question = {"question": WEEK, "budget": {"execution_seconds": 0.3}}
    assert desk.client().post("/v1/deep", json=question).status_code == 200
    return "--execution-seconds, ANAPHORA_EXECUTION_SECONDS, executionSeconds, Budget, REST"


@row("101", "cleanup after disposal")
def cleaned(desk: Desk) -> str:
    before = children()
    asked(desk, block("print(1)"), submits("NOT_FOUND"))
    assert end(children() - before)
    return "no process of the sandbox is left"


@row("106-113", "what it cost")
def cost(desk: Desk) -> str:
    spent = asked(desk, block("print(1)"), submits("It decays.", "s2#0")).cost
    assert spent.input_tokens > 0
    assert spent.output_tokens > 0
    assert spent.estimated_dollars is not None
    assert spent.iterations == 2
    return f"{spent.input_tokens} in, {spent.output_tokens} out, {spent.iterations} iterations"


@row("115", "a cent or two a question")
def price(desk: Desk) -> str:
    del desk
    address = ModelAddress("openai", "gpt-4o-mini", None, "key")
    dollars = RemoteModel(address).price(5 * 3_000, 5 * 300)
    assert dollars is not None
    assert dollars < 0.02
    return f"five calls of 3,000 and 300 tokens to gpt-4o-mini: ${dollars:.4f}"


def prompt(desk: Desk) -> str:
    """All that the model was told before its first program."""
    model = desk.scripted(submits("NOT_FOUND"))
    told(desk.memory(model=model)).deep_recall(WEEK, scope="all_sessions")
    return desk.told(model)[0]


@row("122", "the prompt: recent messages as a variable")
def prompt_history(desk: Desk) -> str:
    assert "history holds" in prompt(desk)
    return "said with its length"


@row("123", "the prompt: available sessions")
def prompt_sessions(desk: Desk) -> str:
    said = prompt(desk)
    assert "Sessions, newest first" in said
    assert "s2: 1 turns" in said
    return "newest first, with turns and title"


@row("124", "the prompt: the functions, with examples")
def prompt_functions(desk: Desk) -> str:
    said = prompt(desk)
    assert "search(query" in said
    assert "load_transcript(best" in said
    return "signatures and three programs"


@row("125", "the prompt: the question")
def prompt_question(desk: Desk) -> str:
    assert f"Question: {WEEK}" in prompt(desk)
    return "as it was asked"


@row("126", "diverse seed queries")
def angles(desk: Desk) -> str:
    queries = seed_queries("How often did Mara and Rafi talk about the staging database?")
    assert len(set(queries)) > 1
    assert "*" not in queries
    assert "A first search found" in prompt(desk)
    return " / ".join(queries)


def repeated(desk: Desk, *questions: str) -> list[bool]:
    """Whether each question, asked in turn, was answered from the cache."""
    memory = told(desk.memory(model=desk.scripted(submits("It decays.", "s2#0"))))
    return [memory.deep_recall(q, scope="all_sessions").cached for q in questions]


@row("134", "the same or nearly the same question within an hour")
def cached(desk: Desk) -> str:
    assert repeated(desk, WEEK, WEEK.lower(), WEEK.replace(" ", "  ")) == [False, True, True]
    desk.later(minutes=61)
    assert repeated(desk, WEEK) == [False]
    return "another case, other spaces: cached; after 61 minutes asked anew"


@row("134 key", "the key: scope and the query in lower case")
def key(desk: Desk) -> str:
    about = (
        "Why did we drop C++?",
        "Why did we drop C#?",
        "Is it -5 degrees?",
        "Is it +5 degrees?",
    )
    assert not any(repeated(desk, *about))
    return "C++ and C#, -5 and +5 are questions of their own"


@row("134 entries", "up to 50 entries")
def entries(desk: Desk) -> str:
    questions = [f"What is the decay of term {n}?" for n in range(51)]
    found = repeated(desk, *questions, questions[50], questions[0])
    assert found == [*[False] * 51, True, False]
    return "the 51st pushes the first out"


@row("134 extraction", "an extraction empties it")
def emptied(desk: Desk) -> str:
    facts = json.dumps([{"fact": "The curiosity term decays.", "turns": [0]}])
    answer = submits("It decays.", "s2#0")
    memory = told(desk.memory(model=desk.scripted(answer), sub_model=ScriptedModel([facts])))
    memory.conversations.append_assistant("s2", "Noted: the curiosity term decays.")
    memory.conversations.append_user("s2", "Yes, since March it does, with a half-life of a day.")
    first = [memory.deep_recall(WEEK, scope="all_sessions").cached for _ in range(2)]
    assert memory.extract("s2").added
    assert [*first, memory.deep_recall(WEEK, scope="all_sessions").cached] == [False, True, False]
    return "cached before, asked anew after"


@row("138", "no useful answer: a gap of priority 0.85 for seven days")
def gap(desk: Desk) -> str:
    memory = told(desk.memory(model=desk.scripted(submits("NOT_FOUND"))))
    answer = memory.deep_recall("Who fed the heron?", scope="all_sessions")
    (found,) = memory.gaps()
    assert found.id == answer.gap_id
    assert (found.kind, found.priority) == ("knowledge_gap", 0.85)
    assert (found.expires_at - found.created_at).days == 7
    return "knowledge_gap, 0.85, 7 days"


@row("138 dream", "the next dream explores it")
def dreamt(desk: Desk) -> str:
    model = desk.scripted(submits("NOT_FOUND"), submits("Ada fed the heron.", "s3#0"))
    memory = told(desk.memory(model=model))
    memory.deep_recall("Who fed the heron?", scope="all_sessions")
    memory.conversations.append_user("s3", "Ada fed the heron at noon.")
    report = memory.dream()
    assert [one.question for one in report.closed] == ["Who fed the heron?"]
    assert Path(desk.home).exists()
    return f"closed by {', '.join(report.closed[0].closed_by)}"
