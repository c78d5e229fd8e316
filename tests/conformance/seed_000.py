"""The conversational recall lane: a relevant old turn comes back, verbatim, within a budget."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from tests.conformance.desk import Counting, Desk
from tests.conformance.table import Seed, refusal, refusals
from tests.conformance.threads import ASKED, VERBATIM, long_thread

import anaphora
from anaphora import AsyncMemory, ConversationStore, Memory, render_recall
from anaphora.embed.base import Vector, Vectors
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.values.conversations import NewTurn, RecallMode

SEED = Seed("000", "conversational recall lane")
row = SEED.row

ELSEWHERE = "quantum chromodynamics lattice gauge theory of hadrons"
HEADER = (
    "Relevant earlier in this conversation "
    "(the live exchange below is more current — it wins on any conflict):"
)


@row("7", "the most relevant turns of an unbounded thread come back")
def relevant_turns(desk: Desk) -> str:
    hits = desk.shared.thread.recall_conversation("t", ASKED)
    assert hits[0].index == 0
    return f"turn 0 of 62 first, {hits[0].score:.3f}"


@row("14", "relevance over recency: an old turn comes back verbatim")
def verbatim(desk: Desk) -> str:
    assert desk.shared.thread.recall_conversation("t", ASKED)[0].text == VERBATIM
    return "byte for byte, before 60 newer turns"


@row(
    "14 newer",
    "of two turns about one thing the more relevant comes first",
    on_purpose="docs/seeds.md#current-values-come-first",
)
def newer_first(desk: Desk) -> str:
    memory = desk.memory("minilm")
    store = memory.conversations
    store.append_user("t", "The staging database listens on port 5433.")
    desk.later(days=1)
    store.append_user("t", "We moved staging: its database listens on port 5439 from today.")
    question = "which port does the staging database listen on?"
    assert [hit.index for hit in memory.recall_conversation("t", question)] == [1, 0]
    cosines = memory.recall_conversation("t", question, mode="vector")
    assert [hit.index for hit in cosines] == [0, 1]
    return "the newer one; mode vector: the more relevant one"


@row("14, 49", "a long turn comes back whole", on_purpose="docs/seeds.md#passages-of-long-turns")
def passages(desk: Desk) -> str:
    memory = desk.memory("minilm")
    said = long_turn(memory, steps=500)
    for mode in ("hybrid", "vector"):
        hit = memory.recall_conversation("t", "zeppelin deployment plan", mode=mode)[0]
        assert hit.excerpt is not None
        assert hit.text in said
    memory.conversations.append_user("short", said[:2_500])
    (hit,) = memory.recall_conversation("short", "zeppelin deployment plan", budget=100)
    assert len(hit.text.encode()) <= 400
    whole = memory.recall_conversation("t", "zeppelin deployment plan", budget=100_000)[0]
    assert (whole.text, whole.excerpt) == (said, None)
    return "the passage of it that bears on the question; with a budget that holds it, the whole"


@row("14, 49 whole", "the whole of a long turn within the default budget, on request")
def whole_turns(desk: Desk) -> str:
    memory = desk.memory("minilm")
    said = long_turn(memory, steps=500)
    options: tuple[dict[str, Any], ...] = ({}, {"budget": 100}, {"mode": "vector"})
    for option in options:
        wanted = {"whole": True, **option}
        hit = memory.recall_conversation("t", "zeppelin deployment plan", **wanted)[0]
        assert (hit.text, hit.excerpt) == (said, None)
    return f"whole=True: {len(said)} characters"


def long_turn(memory: Memory, steps: int) -> str:
    """The text of a turn with many steps, before twenty short ones."""
    text = "The zeppelin deployment plan. " + " ".join(
        f"Step {number}: check valve {number}." for number in range(steps)
    )
    memory.conversations.append_user("t", text)
    for number in range(20):
        memory.conversations.append_user("t", f"chatter {number} about lunch")
    return text


@row("16", "lazy and incremental: one embedding for each new turn")
def incremental(desk: Desk) -> str:
    embedder = Counting()
    memory = desk.memory(embedder)
    long_thread(memory, 8)
    counts = [len(embedder.texts)]
    for question in (ASKED, f"{ASKED} x"):
        memory.recall_conversation("t", question)
        counts.append(len(embedder.texts))
    memory.conversations.append_user("t", "one more")
    memory.recall_conversation("t", f"{ASKED} y")
    counts.append(len(embedder.texts))
    assert counts == [0, 10, 10, 11]
    memory.close()
    later = Counting()
    desk.memory(later).recall_conversation("t", f"{ASKED} z")
    assert later.texts == []
    return "10 turns: 10; asked again: 10; one more turn: 11; after a restart: 0"


@row("18", "the index is disposable")
def disposable(desk: Desk) -> str:
    with desk.memory("minilm") as memory:
        long_thread(memory, 10)
        before = [hit.index for hit in memory.recall_conversation("t", ASKED)]
    shutil.rmtree(desk.home / "index")
    answer = desk.memory("minilm").recall_conversation("t", ASKED)
    assert [hit.index for hit in answer] == before
    assert answer.degraded == ()
    return "deleted, asked: the same hits, nothing degraded"


@row("20", "a failed embedding gives fewer hits, never an error")
def degrades(desk: Desk) -> str:
    memory = desk.memory(Counting(lambda text: "chatter" in text))
    long_thread(memory, 6)
    answer = memory.recall_conversation("t", ASKED)
    assert answer[0].index == 0
    assert answer.degraded
    chatter = memory.recall_conversation("t", "chatter lunch")
    assert len(chatter) > 0
    assert chatter.degraded
    return f"the turn came; {answer.degraded[0]}"


class Broken(Counting):
    """An embedder that raises what is not of this package."""

    def embed(self, texts: object) -> list[Vectors]:
        raise RuntimeError("boom")

    def embed_query(self, text: str) -> Vector:
        raise OSError("no network")


@row("20 foreign", "nor does an error that the embedder did not declare")
def degrades_on_any_error(desk: Desk) -> str:
    memory = desk.memory(Broken())
    long_thread(memory, 3)
    answer = memory.recall_conversation("t", ASKED)
    assert answer[0].index == 0
    assert answer.degraded
    return str(answer.degraded[0])


@row(
    "25-36",
    "one recaller a session, with topK and budget",
    on_purpose="docs/seeds.md#no-recaller-object",
)
def arguments_of_a_call(desk: Desk) -> str:
    memory = desk.shared.thread
    assert not hasattr(memory, "recaller")
    assert len(memory.recall_conversation("t", "chatter lunch", top_k=2, budget=500)) == 2
    return "no object a session: arguments of each call"


@row("29-30, 90-91", "topK 6 and budget 2,500 by default, and both can be changed")
def defaults(desk: Desk) -> str:
    parameters = inspect.signature(Memory.recall_conversation).parameters
    assert (parameters["top_k"].default, parameters["budget"].default) in ((6, 2500), (None, None))
    memory = desk.shared.thread
    assert len(memory.recall_conversation("t", "chatter about lunch")) == 6
    words = ("conversation", "recall", "chatter lunch", "-k", "2", "--budget", "900")
    printed = desk.json(*words, home=memory.home)
    hits = printed["hits"] if isinstance(printed, dict) else printed
    assert len(hits) == 2
    return "6 hits; -k 2 --budget 900: 2"


@row("32", "safe for threads that recall and append at once")
def threads(desk: Desk) -> str:
    memory = desk.memory("minilm")
    long_thread(memory, 4)
    errors: list[Exception] = []

    def repeat(act: Callable[[int], object]) -> None:
        try:
            for number in range(15):
                act(number)
        except Exception as error:  # noqa: BLE001 - any error of a thread fails the row
            errors.append(error)

    acts: list[Callable[[int], object]] = [
        lambda number: memory.conversations.append_user("t", f"thread word {number}"),
        lambda number: memory.recall_conversation("t", f"how do I deploy {number}"),
    ]
    workers = [threading.Thread(target=repeat, args=(act,)) for act in acts * 2]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    thread = memory.conversations.get("t")
    assert thread is not None
    assert len(thread.turns) == 36
    return "two of each, 15 times: no error, every turn there"


@row("35, 78", "a blank query recalls nothing, and is no error")
def blank_query(desk: Desk) -> str:
    memory = desk.shared.thread
    assert [len(memory.recall_conversation("t", blank)) for blank in ("", "   ", "\n")] == [0, 0, 0]
    return "no hits"


@row(
    "38",
    "no embedder or a disabled store: a recaller that does nothing",
    on_purpose="docs/seeds.md#a-memory-always-recalls",
)
def without_a_store(desk: Desk) -> str:
    store = ConversationStore("")
    assert not store.enabled
    assert not store.append_user("t", "x")
    assert store.recent("t") == ()
    memory = desk.memory(None)
    long_thread(memory, 2)
    assert memory.recall_conversation("t", ASKED)[0].index == 0
    refusal(AnaphoraError, lambda: desk.memory(home="other", conversations_dir=" "))
    return "the bare store does nothing; a Memory has a store, and the default embedder or words"


@row(
    "43-45, 56",
    "all turns are ranked by cosine similarity",
    on_purpose="docs/seeds.md#a-sum-of-parts-instead-of-the-cosine",
)
def ranked(desk: Desk) -> str:
    memory = desk.shared.thread
    thread = memory.conversations.get("t")
    assert thread is not None
    model = desk.shared.minilm
    question = model.embed_query(ASKED)
    texts = [turn.text for turn in thread.turns]
    cosines = [float(np.max(parts @ question)) for parts in model.embed(texts)]
    hits = memory.recall_conversation("t", ASKED, mode="vector", top_k=50, budget=100_000)
    assert all(abs(hit.score - cosines[hit.index]) < 2e-3 for hit in hits)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(hits) == 50
    best = memory.recall_conversation("t", ASKED)[0]
    assert abs(best.score - sum(best.factors.values())) < 1e-6
    return "mode vector is the cosine of all turns; the default is a sum of parts"


class Waiting(Counting):
    """An embedder whose questions wait until the row is at its end."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.ended = threading.Event()

    def embed_query(self, text: str) -> Vector:
        self.asked.set()
        self.ended.wait(60)
        return super().embed_query(text)


RECALLS = ("recall_conversation", "recall", "recall_context", "search")


@row("43", "ctx: every recall has a time limit")
def time_limit(desk: Desk) -> str:
    for kind in (Memory, AsyncMemory):
        for name in RECALLS:
            assert "timeout" in inspect.signature(getattr(kind, name)).parameters, name
    embedder = Waiting()
    memory = desk.memory(embedder)
    long_thread(memory, 4)
    limit: dict[str, Any] = {"timeout": 0.3}
    try:
        answer = memory.recall_conversation("t", ASKED, **limit)
        assert embedder.asked.is_set()
    finally:
        embedder.ended.set()
    assert answer[0].index == 0
    assert answer.degraded
    return f"timeout: {answer.degraded[0]}"


@row("43 cancel", "ctx: every recall can be cancelled")
def cancelled(desk: Desk) -> str:
    cancellation = getattr(anaphora, "Cancellation", None)
    assert cancellation is not None, "anaphora has no Cancellation"
    memory = desk.shared.thread
    calls: tuple[Callable[[], object], ...] = (
        lambda: memory.recall_conversation("t", ASKED),
        lambda: memory.recall("lunch"),
        lambda: memory.recall_context("lunch and weather"),
        lambda: memory.search("lunch"),
    )
    with cancellation() as under_way:
        under_way.cancel()
        for call in calls:
            said = refusal(AnaphoraError, call)

    embedder = Waiting()
    waiting = desk.memory(embedder)
    long_thread(waiting, 4)
    ending = cancellation()

    def cancel_once_asked() -> None:
        embedder.asked.wait(60)
        ending.cancel()

    other = threading.Thread(target=cancel_once_asked)
    other.start()
    try:
        with ending:
            refusal(AnaphoraError, lambda: waiting.recall_conversation("t", ASKED))
        assert not embedder.ended.is_set()
    finally:
        embedder.ended.set()
        other.join()
    return f"from another thread, while it waits: {said}"


@row("45", "at most topK, within the token budget")
def bounded(desk: Desk) -> str:
    memory = desk.shared.thread
    assert len(memory.recall_conversation("t", "chatter about lunch", top_k=3)) == 3
    hits = memory.recall_conversation("t", "chatter about lunch", top_k=40, budget=100)
    cost = sum((len(hit.text.encode()) + 3) // 4 for hit in hits)
    assert 0 < cost <= 100
    return f"top_k 3: 3 hits; budget 100: {cost} tokens"


@row("45, 58", "every turn comes where topK allows it, however far from the question")
def every_turn(desk: Desk) -> str:
    hits = desk.shared.thread.recall_conversation(
        "t", "quantum chromodynamics lattice gauge", mode="vector", top_k=100, budget=100_000
    )
    assert len(hits) == 62
    return "mode vector: 62 of 62"


@row("47-50", "a hit has the role and the turn's text")
def hit_fields(desk: Desk) -> str:
    hits = desk.shared.thread.recall_conversation("t", "what do I call to deploy", top_k=10)
    (hit,) = (hit for hit in hits if hit.index == 1)
    assert (hit.role, hit.text) == ("assistant", "call paxeer-net deploy_token...")
    return "role, text; also id, index, time, score, factors"


@row("54", "turns appended since the last call are taken in, another program's too")
def refreshed(desk: Desk) -> str:
    memory = desk.memory("minilm")
    long_thread(memory, 4)
    memory.recall_conversation("t", ASKED)
    memory.conversations.append_user("t", "the xylophone rehearsal is on Friday")
    assert memory.recall_conversation("t", "xylophone rehearsal")[0].index == 6
    path = desk.home / "conversations" / "t.json"
    record = json.loads(path.read_text())
    text = "the harpsichord tuner comes Monday"
    record["turns"].append({"role": "user", "text": text, "ts": "2026-05-01T00:00:00Z"})
    path.write_text(json.dumps(record))
    assert memory.recall_conversation("t", "harpsichord tuner")[0].index == 7
    return "our turn and one written into the file: each first in the next call"


@row("54 backlog", "a backlog of turns is answered at once: by their vectors, or by words")
def backlog(desk: Desk) -> str:
    memory = desk.memory("minilm")
    crew = ["turbine", "kettle", "harbour", "violin", "zebra", "lantern", "pepper", "canvas"]
    turns = [
        NewTurn("user", f"Note {n}: the {crew[n % 8]} near the {crew[n // 8 % 8]} was moved.")
        for n in range(300)
    ]
    turns[100] = NewTurn("user", "My sister is allergic to peanuts.")
    memory.conversations.extend("t", turns)
    answer = memory.recall_conversation("t", "which food must she never eat?")
    assert len(answer) > 0, f"no hits; {answer.degraded}"
    assert answer[0].index == 100 or answer.degraded
    return f"turn {answer[0].index} first; {answer.degraded or 'nothing degraded'}"


@row("55", "the query is embedded")
def query_embedded(desk: Desk) -> str:
    embedder = Counting()
    memory = desk.memory(embedder)
    long_thread(memory, 3)
    for question in (ASKED, ASKED, "weather"):
        memory.recall_conversation("t", question)
    assert len(embedder.queries) == 2
    return "two questions, one asked twice: 2 embeddings"


@row("57", "descending by score", on_purpose="docs/seeds.md#current-values-come-first")
def groups(desk: Desk) -> str:
    thread = desk.shared.thread
    best = {}
    modes: tuple[RecallMode, ...] = ("hybrid", "vector", "words")
    for mode in modes:
        hits = thread.recall_conversation("t", "chatter about lunch", top_k=20, mode=mode)
        scores = [hit.score for hit in hits]
        best[mode] = scores.index(max(scores))
        assert mode == "hybrid" or scores == sorted(scores, reverse=True)
    return f"in vector and words; by default in groups, the best score at rank {best['hybrid'] + 1}"


@row("57 equal", "equal turns in their order")
def equal_turns(desk: Desk) -> str:
    memory = desk.memory("minilm")
    for number in range(6):
        role = "user" if number % 2 else "assistant"
        memory.conversations.append("t", role, "the same words about zeppelins")
    vector = [hit.index for hit in memory.recall_conversation("t", "zeppelins", mode="vector")]
    words = [hit.index for hit in memory.recall_conversation("t", "zeppelins", mode="words")]
    assert vector == list(range(6))
    assert words == sorted(words)
    return "six equal turns 0 to 5"


@row("58", "at least one hit, whatever the budget")
def at_least_one(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.conversations.append_user("t", "lunch " * 300)
    assert [len(memory.recall_conversation("t", "lunch", budget=n)) for n in (0, 1)] == [1, 1]
    return "budgets 0 and 1: one hit of 450 tokens"


@row(
    "58 unrelated",
    "at least one hit, whatever the question",
    on_purpose="docs/seeds.md#silence-when-nothing-answers",
)
def silent(desk: Desk) -> str:
    memory = desk.shared.thread
    answer = memory.recall_conversation("t", ELSEWHERE)
    assert len(answer) == 0
    assert len(answer.nearest) > 0
    assert len(memory.recall_conversation("t", ELSEWHERE, min_confidence=0)) > 0
    other = desk.memory("minilm")
    other.conversations.append_user("t", "ok")
    other.conversations.append_assistant("t", "fine")
    vector = other.recall_conversation("t", "quantum chromodynamics", mode="vector")
    assert len(vector) == 2
    return "none, and the nearest aside; min_confidence 0 or mode vector: there they are"


@row(
    "58 source",
    "filling stops at the first that does not fit",
    on_purpose="docs/seeds.md#what-does-not-fit-is-skipped",
)
def skips(desk: Desk) -> str:
    memory = desk.memory("minilm")
    store = memory.conversations
    store.append_user("t", "zeppelin zeppelin zeppelin")
    store.append_user("t", "zeppelin zeppelin " + "and much more beside it " * 60)
    store.append_user("t", "a zeppelin once")
    hits = memory.recall_conversation("t", "zeppelin", budget=40)
    assert {hit.index for hit in hits} == {0, 2}
    return "the long one is skipped, a smaller one follows"


@row("62", "the caller drops what its live transcript has")
def deduplicated(desk: Desk) -> str:
    memory = desk.shared.thread
    live = [f"chatter number {n} about lunch, weather and the office plants" for n in range(50, 60)]
    asked: dict[str, Any] = {"query": "chatter about lunch", "top_k": 60, "budget": 100_000}
    asked["min_confidence"] = 0.0
    hits = memory.recall_conversation("t", exclude=[f"  {text} " for text in live], **asked)
    assert not {hit.text for hit in hits} & set(live)
    assert len(hits) > 40
    hits = memory.recall_conversation("t", exclude=live[0], **asked)
    assert live[0] not in {hit.text for hit in hits}
    refusals(
        InvalidInput,
        lambda texts: memory.recall_conversation("t", "x", exclude=texts),
        ([1], None, 5),
    )
    return "a list or one text: dropped before the budget is filled; other values are refused"


@row("62 asked", "the question that was just stored is no hit once it is excluded")
def without_the_question(desk: Desk) -> str:
    memory = desk.memory("minilm")
    long_thread(memory, 10)
    memory.conversations.append_user("t", ASKED)
    indexes = [hit.index for hit in memory.recall_conversation("t", ASKED, exclude=ASKED)]
    assert indexes[0] == 0
    assert 12 not in indexes
    return "turn 0 first, the question's own turn not there"


@row("5, 14", "reaches past the turns of the resume seed")
def past_the_resume_seed(desk: Desk) -> str:
    memory = desk.shared.thread
    live = [turn.text for turn in memory.conversations.recent("t")]
    assert len(live) == 16
    assert memory.recall_conversation("t", ASKED, exclude=live)[0].index == 0
    return "the last 16 excluded: turn 0 first"


@row("67-74", "topK and budget come from the configuration")
def from_configuration(desk: Desk) -> str:
    home = desk.shared.thread.home
    words = ("conversation", "recall", "chatter about lunch")

    def count(**settings: str) -> int:
        answer = desk.json(*words, home=home, settings=settings)
        return len(answer["hits"] if isinstance(answer, dict) else answer)

    counts = [count(ANAPHORA_RECALL_TOP_K=most) for most in ("2", "9")]
    counts.append(count(ANAPHORA_RECALL_BUDGET="40"))
    # Three texts of 13 tokens.
    assert counts == [2, 9, 3], counts
    with mock.patch.dict(os.environ, {"ANAPHORA_RECALL_TOP_K": "3"}):
        memory = desk.memory()
    long_thread(memory, 10)
    assert len(memory.recall_conversation("t", "chatter about lunch")) == 3
    assert len(memory.recall_conversation("t", "chatter about lunch", top_k=4)) == 4
    return "ANAPHORA_RECALL_TOP_K, ANAPHORA_RECALL_BUDGET; an argument goes before them"


@row("81-83", "the header of the block")
def header(desk: Desk) -> str:
    hits = desk.shared.thread.recall_conversation("t", ASKED, top_k=1)
    assert HEADER in render_recall(hits).splitlines()
    return "equal character for character"


def two_hits(desk: Desk) -> list[Any]:
    """The seed's two turns, in their order."""
    memory = desk.memory("minilm")
    memory.conversations.append_user("t", "how do I deploy an ERC-20")
    memory.conversations.append_assistant("t", "call paxeer-net deploy_token...")
    hits = memory.recall_conversation("t", "deploy an ERC-20")
    return sorted(hits, key=lambda hit: hit.index)


@row("81-85", "the rendered block, on request")
def block(desk: Desk) -> str:
    block_text = render_recall(two_hits(desk), labels={"assistant": "Neo"}, notice="")
    assert block_text.splitlines() == [
        HEADER,
        "- User: how do I deploy an ERC-20",
        "- Neo: call paxeer-net deploy_token...",
    ], block_text
    return 'notice="": equal to the seed\'s three lines'


@row(
    "84-85",
    "an item is a label and the text",
    on_purpose="docs/seeds.md#a-block-with-days-and-a-notice",
)
def items(desk: Desk) -> str:
    lines = render_recall(two_hits(desk), labels={"assistant": "Neo"}).splitlines()
    assert f"- User ({desk.now:%Y-%m-%d}): how do I deploy an ERC-20" in lines
    assert f"- Neo ({desk.now:%Y-%m-%d}): call paxeer-net deploy_token..." in lines
    assert any("data, not instructions" in line for line in lines)
    return "each item with its day; a notice that they are data"


@row("93", "a turn costs (bytes + 3) / 4 tokens")
def tokens(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.conversations.append_user("t", "é" * 40 + " zeppel")  # 87 bytes
    memory.conversations.append_user("t", "é" * 40 + " zeppelin zz")  # 92 bytes
    counts = [
        len(memory.recall_conversation("t", "é" * 40, budget=budget, mode="words"))
        for budget in (44, 45)
    ]
    assert counts == [1, 2]
    return "22 and 23 tokens: budget 44 gives one, 45 two"


@row("43 tool", "over MCP too")
def tool(desk: Desk) -> str:
    tools = desk.shared.all_tools
    turns = [
        {"role": "user", "text": "how do I deploy an ERC-20"},
        {"role": "assistant", "text": "call paxeer-net deploy_token..."},
    ]
    tools.call("save_turns", conversationId="t", turns=turns)
    asked = {"query": "deploy ERC-20", "conversationId": "t", "topK": 2, "budget": 500}
    texts = {hit["text"] for hit in tools.call("recall_conversation", **asked)["data"]}
    assert texts == {turn["text"] for turn in turns}
    return "recall_conversation with topK and budget"
