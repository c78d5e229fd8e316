"""Deep recall: a model writes its own search, in a sandbox, and cites what exists."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any
from unittest import mock

from tests.conformance.desk import Desk
from tests.conformance.shared import Tools
from tests.conformance.table import Seed
from tests.deep.openai_server import OpenAIServer
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
HERON = "Who fed the heron?"


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


def programs(answer: DeepAnswer) -> int:
    """How many programs ran."""
    return sum(step.kind == "code" for step in answer.steps)


def settings_of(server: OpenAIServer) -> dict[str, str]:
    """Variables that name the model on a server of the desk."""
    return {"ANAPHORA_MODEL_URL": server.url, "ANAPHORA_MODEL": "loop"}


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


@row("37", "the prompt, and the history as a variable")
def history_variable(desk: Desk) -> str:
    seen = printed(desk, "print(history)\nprint(question)")
    assert "curiosity term decays now" in seen
    assert WEEK in seen
    return "history and question are there"


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
        assert programs(answer) == allowed, f"{programs(answer)} programs of {allowed}"
        desk.later(hours=2)
    assert programs(asked(desk, block("print(1)"))) == 5
    desk.later(hours=2)
    assert programs(asked(desk, block("print(1)"), budget=Budget(iterations=7))) == 7
    return "a model that never submits: five programs by default, one of one, seven on request"


@row("42, 102 set", "the same on the command line", sockets=True)
def iterations_set(desk: Desk) -> str:
    told(desk.memory()).close()
    server = desk.model_server(block("print(1)"))
    words = ("deep", WEEK, "--scope", "all_sessions", "--iterations", "2")
    steps = desk.json(*words, settings=settings_of(server))["steps"]
    assert [step["kind"] for step in steps].count("code") == 2
    return "--iterations 2: two programs"


@row("43-44", "a final answer, formatted with its sources")
def formatted(desk: Desk) -> str:
    answer = asked(desk, submits("It decays.", "s2#0", "made-up#9"), DECAYS)
    assert answer.supported
    assert [source.id for source in answer.sources] == ["s2#0"]
    assert answer.sources[0].text.startswith("GCCRF changes")
    assert not asked(desk, submits("It decays.", "nope#1"), question=f"{WEEK} 2").supported
    return "ids exist; one that was made up is refused"


@row("43-44 surfaces", "on the command line and over MCP, with the cost", sockets=True)
def formatted_on_surfaces(desk: Desk) -> str:
    told(desk.memory()).close()
    server = desk.model_server(submits("The curiosity term decays.", "s2#0"))
    words = ("deep", WEEK, "--scope", "all_sessions")
    text = desk.anaphora(*words, settings=settings_of(server)).stdout
    assert "s2#0" in text
    assert "decays" in text
    asked_over_mcp = {"query": f"{WEEK} again", "scope": "all_sessions"}
    tools = Tools(desk.home, **settings_of(server), ANAPHORA_EMBEDDER="hashing")
    try:
        answer = tools.call("deep_recall", **asked_over_mcp)["data"]
        assert "s2#0" in tools.text("deep_recall", **asked_over_mcp)
    finally:
        tools.close()
    assert [source["id"] for source in answer["sources"]] == ["s2#0"]
    assert answer["cost"]["input_tokens"] == 1234 * answer["cost"]["code"]["calls"] > 0
    return "the answer, its sources, its cost"


@row("32 tool", "the tool answers without a model, too")
def tool_without_a_model(desk: Desk) -> str:
    answer = desk.shared.tools.call("deep_recall", query="how often did we talk about vitest?")
    assert answer["success"] is True
    assert answer["data"]["note"]
    return str(answer["data"]["note"])[:120]


@row("32 server", "over HTTP: the answer with its cost, and a budget that is checked")
def over_http(desk: Desk) -> str:
    told(desk.memory()).close()
    client = desk.client()
    question = {"question": WEEK, "scope": "all_sessions"}
    limits = {"iterations": 3, "execution_seconds": 2}
    body = client.post("/v1/deep", json={**question, "budget": limits}).json()
    assert {"answer", "sources", "steps", "cost"} <= set(body)
    assert body["sources"]
    refused = client.post("/v1/deep", json={**question, "budget": {"iterations": "x"}})
    assert refused.status_code == 422
    return ", ".join(sorted(body))


@row("52-55", "words and meaning, across sessions, in time, chained")
def combined(desk: Desk) -> str:
    code = (
        "import re\n"
        "from datetime import datetime\n"
        "early = search('GCCRF', until='2026-01-01')\n"
        "late = [h for h in search('GCCRF', since='2026-01-01') if h['kind'] == 'turn']\n"
        "print(len([h for h in early if h['kind'] == 'turn']))\n"
        "print(sorted({h['conversation'] for h in late if re.search('GCCRF', h['text'])}))\n"
        "print(datetime.fromisoformat(late[0]['ts'].replace('Z', '+00:00')).strftime('%A'))\n"
        "print(len(search(late[0]['text'][:20])) > 0)\n"
        "spoken = [h for h in search('GCCRF', speaker='user') if h['kind'] == 'turn']\n"
        "print(sorted(h['id'] for h in spoken))"
    )
    early, sessions, day, chained, speakers = printed(desk, code).splitlines()
    assert (early, sessions) == ("0", "['s1', 's2']")
    assert (day, chained) == (f"{desk.now:%A}", "True")
    assert speakers == "['s1#0', 's2#0']"
    return "since, until, speaker, re, a weekday, and a search of what the first one gave"


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
        NOTHING,
    ))  # fmt: skip
    answer = told(memory).deep_recall(WEEK, scope="all_sessions")
    seen = answer.steps[0].output
    assert "'turn'" in seen
    assert seen.count("True") == 2
    return "one scale of 0 to 1, best first: " + seen.splitlines()[0]


@row("59-71", "among 200 other turns the example's threshold leaves the relevant ones")
def example_among_others(desk: Desk) -> str:
    code = (
        "hits = search('GCCRF implementation details', limit=20)\n"
        "print([h['id'] for h in hits if h['score'] > 0.6])"
    )
    memory = desk.memory("minilm", model=desk.scripted(block(code), NOTHING))
    topics = "lunch at the harbour;the printer is out of paper;a meeting on Tuesday;new curtains"
    for number in range(200):
        role = "assistant" if number % 2 else "user"
        text = f"{topics.split(';')[number % 4]}, note {number}"
        memory.conversations.append(f"c{number // 20}", role, text)
    store = memory.conversations
    store.append_user("c3", "The GCCRF implementation: a tanh of the weighted sum of five terms.")
    store.append_assistant("c3", "So GCCRF combines five weighted terms through tanh.")
    store.append_user("c8", "GCCRF details: we changed the decay of the curiosity term.")
    memory.ready(60)
    answer = memory.deep_recall("What are the GCCRF implementation details?", scope="all_sessions")
    left = answer.steps[0].output.strip()
    assert "c3#20" in left
    assert left.count("#") <= 3
    return left


@row("67-71", "return {summary, sources}", on_purpose="docs/seeds.md#submit-instead-of-return")
def submitted(desk: Desk) -> str:
    answer = asked(desk, DECAYS)
    assert answer.answer == "It decays."
    assert answer.sources[0].text.startswith("GCCRF changes")
    return "submit(answer, ids); the texts come back in the sources"


@row("77-83", "three results or more; it must not always fire")
def not_always(desk: Desk) -> str:
    memory = desk.memory(model=(model := desk.scripted(NOTHING)))
    assert not sure(memory, "Who told us about the harbour?").shortcut
    assert model.asked
    return "one good hit among noise: the model is asked"


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


@row("98", "no process, require, fs or network")
def isolated(desk: Desk) -> str:
    attacks = (
        "open('/etc/passwd')",
        "import os\nprint(os.environ)",
        "import socket",
        "__import__('os').system('id')",
        "import subprocess",
        "print(().__class__.__bases__[0].__subclasses__())",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1')",
    )
    memory = told(desk.memory())
    for number, code in enumerate(attacks):
        memory.close()
        memory = desk.memory(model=desk.scripted(block(code), NOTHING))
        step = memory.deep_recall(f"{WEEK} {number}", scope="all_sessions").steps[0]
        assert step.error, (code, step.output)
    return f"{len(attacks)} attempts, each refused"


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


@row("99", "APIs to search, load a transcript, list sessions and print")
def functions(desk: Desk) -> str:
    seen = printed(desk, "print([s['id'] for s in list_sessions()], len(load_transcript('s1')))")
    assert seen.strip() == "['s1', 's2'] 2"
    return "search, load_transcript, list_sessions, print; also llm_query and submit"


@row("100", "a time limit for each execution")
def time_limit(desk: Desk) -> str:
    budget = Budget(execution_seconds=0.5)
    answer = asked(desk, block("while True: pass"), NOTHING, budget=budget)
    assert "0.5 s" in (answer.steps[0].error or "")
    return str(answer.steps[0].error)


@row("100 set", "the limit is set on the command line, by a variable, over MCP, in Python and REST")
def time_limit_set(desk: Desk) -> str:
    with told(desk.memory()):
        pass
    memory = desk.memory(model=desk.scripted(block("while True: pass"), NOTHING))
    answer = memory.deep_recall(WEEK, scope="all_sessions", budget=Budget(execution_seconds=0.3))
    assert "0.3 s" in (answer.steps[0].error or "")
    help_text = desk.anaphora("deep", "--help", settings={"COLUMNS": "200"}).stdout
    assert "--execution-seconds" in help_text
    refused = desk.anaphora("deep", WEEK, settings={"ANAPHORA_EXECUTION_SECONDS": "soon"})
    assert refused.returncode == 2
    assert "ANAPHORA_EXECUTION_SECONDS" in refused.stderr
    tools = desk.shared.tools
    assert tools.call("deep_recall", query=WEEK, executionSeconds=0.3)["success"]
    tools.refusal("deep_recall", query=WEEK, executionSeconds=0)
    question = {"question": WEEK, "budget": {"execution_seconds": 0.3}}
    assert desk.client().post("/v1/deep", json=question).status_code == 200
    return "--execution-seconds, ANAPHORA_EXECUTION_SECONDS, executionSeconds, Budget, REST"


@row("101", "cleanup after disposal")
def cleaned(desk: Desk) -> str:
    before = children()
    asked(desk, block("print(1)"), NOTHING)
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


@row("106-113 server", "the tokens that the server counted", sockets=True)
def cost_of_a_server(desk: Desk) -> str:
    server = desk.model_server(DECAYS)
    spent = served(desk, server).deep_recall(WEEK, scope="all_sessions").cost
    assert spent.code.calls >= 1
    assert spent.input_tokens == 1234 * spent.code.calls
    assert spent.output_tokens == 56 * spent.code.calls
    assert spent.estimated_dollars is None
    return f"{spent.input_tokens} in; no dollars for a model without a known price"


def served(desk: Desk, server: OpenAIServer) -> Memory:
    """The two sessions, with the model of a server, which variables name."""
    with mock.patch.dict(os.environ, settings_of(server)):
        return told(desk.memory())


@row("115", "half a cent to two cents a question")
def price(desk: Desk) -> str:
    del desk
    dollars = {}
    for provider, name in (("openai", "gpt-4o-mini"), ("anthropic", "claude-3-5-haiku-latest")):
        model = RemoteModel(ModelAddress(provider, name, None, "key"))
        cost = model.price(15_000, 1_500)
        assert cost is not None
        assert 0 < cost < 0.02
        dollars[name] = round(cost, 4)
    return f"five calls of 3,000 and 300 tokens: {dollars}"


def prompt(desk: Desk) -> str:
    """All that the model was told before its first program."""
    model = desk.scripted(NOTHING)
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
    assert "load_transcript(" in said
    assert "list_sessions(" in said
    assert "```python" in said
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
    said = prompt(desk)
    assert "s2#0" in said[said.index("A first search found") :]
    return " / ".join(queries)


def repeated(desk: Desk, *questions: str) -> list[bool]:
    """Whether each question, asked in turn, was answered from the cache."""
    memory = told(desk.memory(model=desk.scripted(submits("It decays.", "s2#0"))))
    return [memory.deep_recall(q, scope="all_sessions").cached for q in questions]


@row("134", "the same or nearly the same question within an hour")
def cached(desk: Desk) -> str:
    variants = (WEEK.lower(), f"  {WEEK.replace(' ', '  ')}", WEEK.rstrip("?"))
    assert repeated(desk, WEEK, *variants) == [False, True, True, True]
    memory = desk.memory(model=desk.scripted(DECAYS))
    answers = [memory.deep_recall(WEEK, scope="all_sessions").cached]
    for minutes in (59, 2):
        desk.later(minutes=minutes)
        answers.append(memory.deep_recall(WEEK, scope="all_sessions").cached)
    assert answers == [True, True, False]
    return "another case, other spaces, no question mark, opened again: cached; after 61 min not"


@row("134 key", "the key: scope and the query in lower case")
def key(desk: Desk) -> str:
    pairs = (
        ("Why did we drop C++?", "Why did we drop C#?"),
        ("Is it -5 degrees?", "Is it +5 degrees?"),
        ("What is 🐶?", "What is 🐱?"),
        ("Is it $5?", "Is it 5%?"),
        ("Schön?", "schon?"),
        ("~/.config?", "config?"),
    )
    assert not any(repeated(desk, *(question for pair in pairs for question in pair)))
    memory = desk.memory(model=desk.scripted(DECAYS))
    scopes: tuple[Any, ...] = ("all_sessions", "recent_sessions", "all_sessions")
    assert [memory.deep_recall(WEEK, scope=scope).cached for scope in scopes] == [
        False,
        False,
        True,
    ]
    memory = told(desk.memory(model=desk.scripted(NOTHING), home="gaps"))
    gaps = {
        memory.deep_recall(f"What did we decide about {name}?", scope="all_sessions").gap_id
        for name in ("C++", "C#")
    }
    assert len(gaps) == 2
    return "C++ and C#, -5 and +5, other signs and another scope are questions of their own"


@row("134 entries", "up to 50 entries")
def entries(desk: Desk) -> str:
    questions = [f"What is the decay of term {n}?" for n in range(51)]
    answers = repeated(desk, *questions, questions[50], questions[1], questions[0])
    assert answers == [*[False] * 51, True, True, False]
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


@row("134 any extraction", "an extraction of another session empties it, too")
def emptied_by_any(desk: Desk) -> str:
    facts = json.dumps([{"fact": "The heron eats fish.", "turns": [0]}])
    memory = told(desk.memory(model=desk.scripted(DECAYS), sub_model=ScriptedModel([facts])))
    store = memory.conversations
    store.append_user("h1", "The heron at the pond eats fish every morning, says Ada.")
    store.append_assistant("h1", "Noted, it eats fish.")
    store.append_user("h1", "And it sleeps standing on one leg beside the old bridge.")
    before = [memory.deep_recall(WEEK, scope="all_sessions").cached for _ in range(2)]
    assert memory.extract("h1").added
    after = memory.deep_recall(WEEK, scope="all_sessions").cached
    assert [*before, after] == [False, True, False]
    return "cached before, asked anew after"


@row("18 memories", "memories are part of what is searched, unless they are left out")
def memories_too(desk: Desk) -> str:
    code = "print(sorted({h['kind'] for h in search('GCCRF formula five terms')}))"
    question = "What are the terms of the formula?"
    assert printed(desk, code, question=question).strip() == "['memory', 'turn']"
    options = {"question": f"{question} 2", "include_memory": False}
    assert printed(desk, code, **options).strip() == "['turn']"
    return "include_memory=False: turns alone"


@row("138", "no useful answer: a gap of priority 0.85 for seven days")
def gap(desk: Desk) -> str:
    memory = told(desk.memory(model=desk.scripted(NOTHING)))
    answer = memory.deep_recall(HERON, scope="all_sessions")
    (registered,) = memory.gaps()
    assert registered.id == answer.gap_id
    assert (registered.kind, registered.priority) == ("knowledge_gap", 0.85)
    assert registered.expires_at - registered.created_at == timedelta(days=7)
    desk.later(hours=2)
    memory.deep_recall(HERON.lower().rstrip("?"), scope="all_sessions")
    (again,) = memory.gaps()
    assert (again.id, again.asked) == (registered.id, 2)
    desk.later(days=8)
    assert memory.gaps() == ()
    return "knowledge_gap, 0.85, 7 days; asked twice it is one; after 8 days it is gone"


@row("138 unsupported", "an answer without evidence is no useful answer")
def gap_of_an_unsupported_answer(desk: Desk) -> str:
    answer = asked(desk, submits("I could not find anything about it."), question=HERON)
    assert answer.gap_id is not None
    assert not answer.supported
    return "a gap"


@row("138 without a model", "nothing found without a model: a gap, too")
def gap_without_a_model(desk: Desk) -> str:
    memory = told(desk.memory("minilm"))
    answer = memory.deep_recall("Who fed the heron at the old mill?", scope="all_sessions")
    (registered,) = memory.gaps()
    assert (registered.id, registered.priority) == (answer.gap_id, 0.85)
    return "registered with 0.85"


@row("138 failed model", "a model that fails: what a search finds, and why", sockets=True)
def failed_model(desk: Desk) -> str:
    server = desk.model_server(NOTHING, status=500)
    answer = served(desk, server).deep_recall(WEEK, scope="all_sessions")
    assert answer.sources
    assert answer.degraded
    assert answer.gap_id is None
    return str(answer.degraded[0].reason)[:120]


@row("138 dream", "the next dream explores it, and closes what can be answered now")
def dreamt(desk: Desk) -> str:
    model = desk.scripted(NOTHING, submits("Ada fed the heron.", "s3#0"))
    memory = told(desk.memory(model=model))
    memory.deep_recall(HERON, scope="all_sessions")
    memory.conversations.append_user("s3", "At noon the grey bird got Ada's sandwich.")
    report = memory.dream()
    assert [closed.question for closed in report.closed] == [HERON]
    assert "Ada fed the heron" in memory.get(report.stored[0]).text
    return f"closed by {', '.join(report.closed[0].closed_by)}"


@row("138 next cycle", "the next cycle explores it where nothing new was said, too")
def explored_without_news(desk: Desk) -> str:
    memory = told(desk.memory(model=(model := desk.scripted(NOTHING))))
    memory.deep_recall(HERON, scope="all_sessions")
    calls = len(model.asked)
    assert len(memory.dream().explored) == 1
    assert len(model.asked) > calls
    return "explored; the model was asked again"


@row("138 jobs", "cycles are begun by the end of a session")
def dreamt_by_itself(desk: Desk) -> str:
    memory = told(desk.memory(model=desk.scripted(NOTHING)))
    memory.deep_recall(HERON, scope="all_sessions")
    memory.end_session("s1")
    assert len(memory.run_jobs().explored) == 1
    return "a session ended; the jobs that waited explored the gap"
