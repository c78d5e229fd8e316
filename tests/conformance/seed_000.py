"""The conversational recall lane: a relevant old turn comes back, verbatim, within a budget."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from tests.conformance.desk import Desk, long_thread
from tests.conformance.table import Seed, refusal

from anaphora import ConversationStore, Memory, RecallMode, render_recall
from anaphora.errors import AnaphoraError

SEED = Seed("000", "conversational recall lane")
row = SEED.row

ASKED = "how do I deploy an ERC-20"
ELSEWHERE = "quantum chromodynamics lattice gauge theory of hadrons"


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


def long_turn(memory: Memory, steps: int) -> str:
    """The text of a turn with many steps, before twenty short ones."""
    text = "The zeppelin deployment plan. " + " ".join(
        f"Step {number}: check valve {number}." for number in range(steps)
    )
    memory.conversations.append_user("t", text)
    for number in range(20):
        memory.conversations.append_user("t", f"chatter {number} about lunch")
    return text


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


def two_hits(desk: Desk) -> list[Any]:
    """The seed's two turns, in their order."""
    memory = desk.memory("minilm")
    memory.conversations.append_user("t", "how do I deploy an ERC-20")
    memory.conversations.append_assistant("t", "call paxeer-net deploy_token...")
    hits = memory.recall_conversation("t", "deploy an ERC-20")
    return sorted(hits, key=lambda hit: hit.index)


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
