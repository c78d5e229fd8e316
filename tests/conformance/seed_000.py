"""The conversational recall lane: a relevant old turn comes back, verbatim, within a budget."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.conformance.desk import Counting, Desk
from tests.conformance.table import Seed, refusal

from anaphora import Cancellation, ConversationStore, Memory, render_recall
from anaphora.errors import Cancelled
from anaphora.values.conversations import NewTurn

SEED = Seed("000", "conversational recall lane")
row = SEED.row

VERBATIM = 'VERBATIM  two  spaces\n\nand <html> & "quotes" on how to deploy an ERC-20'
ASKED = "how do I deploy an ERC-20"


def long_thread(memory: Memory, turns: int = 60) -> None:
    """A thread whose one relevant turn has long scrolled out of sight."""
    memory.conversations.append_user("t", VERBATIM)
    for place in range(turns):
        memory.conversations.append_user("t", f"chatter number {place} about lunch and weather")


@row("7", "the most relevant turns of an unbounded thread come back")
def relevant_turns(desk: Desk) -> str:
    memory = desk.memory("minilm")
    long_thread(memory)
    hits = memory.recall_conversation("t", ASKED)
    assert hits[0].index == 0
    return f"turn 0 of 61 first, {hits[0].score:.3f}"


@row("14", "relevance over recency: an old turn comes back verbatim")
def verbatim(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    hit = memory.recall_conversation("t", ASKED)[0]
    assert hit.text == VERBATIM
    return "byte for byte, before 60 newer turns"


@row("16", "lazy and incremental: one embedding for each new turn")
def incremental(desk: Desk) -> str:
    embedder = Counting()
    memory = desk.memory(embedder)
    long_thread(memory, 9)
    counts = []
    for _ in range(2):
        memory.recall_conversation("t", ASKED)
        counts.append(len(embedder.texts))
    memory.conversations.append_user("t", "one more")
    memory.recall_conversation("t", ASKED)
    assert [*counts, len(embedder.texts)] == [10, 10, 11]
    return "10 turns: 10; asked again: 10; one more turn: 11"


@row("18", "the index is disposable")
def disposable(desk: Desk) -> str:
    with Memory.open(desk.home, embedder="hashing") as memory:
        long_thread(memory)
        before = [hit.index for hit in memory.recall_conversation("t", ASKED)]
    shutil.rmtree(desk.home / "index")
    found = desk.memory().recall_conversation("t", ASKED)
    assert [hit.index for hit in found] == before
    assert not found.degraded
    return "deleted, asked: the same hits, nothing degraded"


@row("20", "a failed embedding gives fewer hits, never an error")
def degrades(desk: Desk) -> str:
    memory = desk.memory(Counting(lambda text: "lunch" in text))
    long_thread(memory, 5)
    found = memory.recall_conversation("t", ASKED)
    assert found[0].index == 0
    assert found.degraded
    return f"the turn came; {found.degraded[0]}"


@row(
    "25-36",
    "one recaller a session, with topK and budget",
    on_purpose=("docs/reference/python.md", "### recall_conversation"),
)
def arguments_of_a_call(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    assert len(memory.recall_conversation("t", "chatter lunch", top_k=2, budget=500)) == 2
    return "no object a session: arguments of each call"


@row("29-30", "topK and budget have defaults")
def defaults(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    hits = memory.recall_conversation("t", "chatter lunch weather")
    assert len(hits) == 6
    return "6 hits within 2,500 tokens"


@row("90-91", "both can be changed")
def defaults_changed(desk: Desk) -> str:
    long_thread(desk.memory())
    told = desk.json("conversation", "recall", "chatter lunch", "--top-k", "2", "--budget", "900")
    hits = told["hits"] if isinstance(told, dict) else told
    assert len(hits) == 2
    return "--top-k 2 --budget 900: 2 hits"


@row(
    "38",
    "no embedder or a disabled store: a recaller that does nothing",
    on_purpose=("docs/reference/python.md", "a blank directory gives a store that keeps nothing"),
)
def without_a_store(desk: Desk) -> str:
    store = ConversationStore("")
    assert not store.enabled
    assert not store.append_user("t", "x")
    return "the bare store keeps nothing; a Memory always has a store, and words answer alone"


@row(
    "43-45",
    "all turns are ranked by cosine similarity",
    on_purpose=("docs/ranking.md", "words"),
)
def ranked(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    cosines = [h.score for h in memory.recall_conversation("t", ASKED, mode="vector")]
    assert cosines == sorted(cosines, reverse=True)
    hit = memory.recall_conversation("t", ASKED)[0]
    assert abs(hit.score - sum(hit.factors.values())) < 1e-6
    return "mode vector is the cosine; the default is a sum of parts"


@row("45", "at most topK, within the token budget")
def bounded(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    assert len(memory.recall_conversation("t", "chatter lunch", top_k=3)) == 3
    found = memory.recall_conversation("t", "chatter lunch", top_k=9, budget=30)
    cost = sum(-(-len(h.text.encode()) // 4) for h in found)
    assert cost <= 30
    return f"top_k 3: 3 hits; budget 30: {cost} tokens"


@row("47-50", "a hit has role and text")
def hit_fields(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    hit = memory.recall_conversation("t", ASKED)[0]
    assert (hit.role, hit.text) == ("user", VERBATIM)
    return "role, text; also id, index, time, score, factors"


@row("54", "turns appended since the last call are taken in")
def refreshed(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    memory.recall_conversation("t", ASKED)
    memory.conversations.append_assistant("t", "call deploy_token for the zeppelin")
    assert memory.recall_conversation("t", "zeppelin")[0].index == 61
    return "the new turn first in the next call"


@row("55", "the query is embedded")
def query_embedded(desk: Desk) -> str:
    embedder = Counting()
    memory = desk.memory(embedder)
    long_thread(memory, 3)
    for question in (ASKED, ASKED, "weather"):
        memory.recall_conversation("t", question)
    assert len(embedder.queries) == 2
    return "two questions, one asked twice: 2 embeddings"


@row("57", "descending by score")
def descending(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    scores = [h.score for h in memory.recall_conversation("t", "chatter about lunch", top_k=20)]
    assert scores == sorted(scores, reverse=True)
    return "20 hits in order"


@row("58", "at least one hit if there is any")
def at_least_one(desk: Desk) -> str:
    memory = desk.memory()
    memory.conversations.append_user("t", "lunch " * 400)
    assert len(memory.recall_conversation("t", "lunch", budget=1)) == 1
    return "budget 1: one hit of 600 tokens"


@row(
    "58 source",
    "filling stops at the first that does not fit",
    on_purpose=("docs/DOMAIN.md", "others that do not fit are skipped"),
)
def skips(desk: Desk) -> str:
    memory = desk.memory()
    memory.conversations.append_user("t", "zeppelin zeppelin zeppelin")
    memory.conversations.append_user("t", "zeppelin zeppelin " + "and much more beside it " * 90)
    memory.conversations.append_user("t", "a zeppelin once")
    found = memory.recall_conversation("t", "zeppelin", budget=40)
    assert {h.index for h in found} == {0, 2}
    return "the long one is skipped, a smaller one follows"


@row("62", "the caller drops what its live transcript has")
def deduplicated(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    live = [f"chatter number {n} about lunch and weather" for n in range(50, 60)]
    for exclude in ([f" {text} " for text in live], live[0]):
        found = memory.recall_conversation("t", "chatter lunch", top_k=60, exclude=exclude)
        dropped = {exclude} if isinstance(exclude, str) else set(live)
        assert not dropped & {h.text for h in found}
    return "a list or one text: dropped before the budget is filled"


@row("67-74", "topK and budget come from configuration")
def from_configuration(desk: Desk) -> str:
    home = desk.folder / "configured"
    home.mkdir()
    (home / "settings.json").write_text('{"recall_top_k": 3, "recall_budget": 30}')
    with Memory.open(home, embedder="hashing") as memory:
        long_thread(memory)
        hits = memory.recall_conversation("t", "chatter about lunch")
        assert len(hits) <= 3
        assert sum(-(-len(hit.text.encode()) // 4) for hit in hits) <= 30
        assert len(memory.recall_conversation("t", "chatter lunch", top_k=6, budget=2500)) == 6
    page = (Path(__file__).resolve().parents[2] / "docs/reference/configuration.md").read_text()
    assert "ANAPHORA_RECALL_TOP_K" in page
    assert "ANAPHORA_RECALL_BUDGET" in page
    return "variables, and the home's settings; arguments win"


@row("43", "a recall can be cancelled or given a time limit")
def limited(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    assert memory.recall_conversation("t", ASKED, timeout=5)
    with Cancellation() as cancellation:
        cancellation.cancel()
        assert refusal(Cancelled, lambda: memory.recall_conversation("t", ASKED))
    return "`timeout`, and `Cancellation`"


@row("54 backlog", "new turns are embedded before they are ranked")
def backlog(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.ready(60)
    turns = [NewTurn("user", f"Note {n}: the kettle was moved by a crew.") for n in range(300)]
    turns[280] = NewTurn("user", "My sister is allergic to peanuts.")
    memory.conversations.extend("t", turns)
    hits = memory.recall_conversation("t", "which food must she never eat?")
    assert hits[0].index == 280
    return "300 new turns, no common word: found by the first recall"


@row("49 whole", "a long turn comes whole on request")
def whole(desk: Desk) -> str:
    memory = desk.memory()
    text = "The zeppelin plan. " + " ".join(f"Step {n}: check valve {n}." for n in range(500))
    memory.conversations.append_user("t", text)
    for mode in ("hybrid", "vector"):
        found = memory.recall_conversation("t", "zeppelin plan", mode=mode, whole=True, budget=100)
        assert [(hit.text, hit.excerpt) for hit in found] == [(text, None)]
    return "3,000 tokens"


@row("81-83", "the header of the block")
def header(desk: Desk) -> str:
    memory = desk.memory()
    long_thread(memory)
    block = render_recall(memory.recall_conversation("t", ASKED))
    said = (
        "Relevant earlier in this conversation "
        "(the live exchange below is more current — it wins on any conflict):"
    )
    assert block.splitlines()[1] == said
    return "equal character for character"


@row("84-85", "an item for each hit, by who said it")
def items(desk: Desk) -> str:
    memory = desk.memory()
    memory.conversations.append_user("t", "how do I deploy an ERC-20")
    memory.conversations.append_assistant("t", "call paxeer-net deploy_token...")
    hits = sorted(memory.recall_conversation("t", "deploy ERC-20"), key=lambda hit: hit.index)
    assert render_recall(hits, labels={"assistant": "Neo"}, notice="") == (
        "Relevant earlier in this conversation "
        "(the live exchange below is more current — it wins on any conflict):\n"
        "- User: how do I deploy an ERC-20\n"
        "- Neo: call paxeer-net deploy_token..."
    )
    return "the seed's three lines, equal"


@row("93", "a turn costs (bytes + 3) / 4 tokens")
def tokens(desk: Desk) -> str:
    memory = desk.memory()
    memory.conversations.append_user("t", "é" * 40 + " zeppel")  # 87 bytes
    memory.conversations.append_user("t", "é" * 40 + " zeppelin zz")  # 92 bytes
    counts = [
        len(memory.recall_conversation("t", "é" * 40, budget=budget, mode="words"))
        for budget in (44, 45)
    ]
    assert counts == [1, 2]
    return "22 and 23 tokens: budget 44 gives one, 45 two"
