"""A question of any length: what is read of it, and that nothing costs more than that."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path

import anyio
import pytest
from tests.conftest import Clock
from tests.deep.asking import Script
from tests.mcp_client import SCRIPT, call, connected
from tests.surfaces.rest_desk import served

from anaphora import Degraded, Memory, Vector, Vectors
from anaphora.errors import InvalidInput
from anaphora.testing import WordHashingEmbedder

LONG = 300_000
BLANK = Degraded("query", "it is empty, so nothing was looked for")
MOST_BYTES = 4_096
"""What is read of a question, at most."""
PASTED = "the harbour master wrote on 3 May 2023 that cranes are oiled. " * 5_000


class Counting:
    """Hashes words, and keeps how many bytes each question had that became a vector."""

    def __init__(self) -> None:
        self._inner = WordHashingEmbedder(64)
        self.name = self._inner.name
        self.dimensions = self._inner.dimensions
        self.asked: list[int] = []

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        return self._inner.embed(texts)

    def embed_query(self, text: str) -> Vector:
        self.asked.append(len(text.encode("utf-8", "surrogatepass")))
        return self._inner.embed_query(text)

    def query_key(self, text: str) -> Hashable:
        return self._inner.query_key(text)


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def memory(tmp_path: Path, counting: Counting, clock: Clock) -> Iterator[Memory]:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "queue.py").write_text("def enqueue(job):\n    return job\n")
    with Memory.open(tmp_path / "home", embedder=counting, clock=clock) as opened:
        _fill(opened)
        opened.index_project(root, name="shop")
        yield opened


def _fill(memory: Memory) -> None:
    for text in ("the queue keeps jobs", "walnuts are for Ada", "cranes are oiled in May"):
        memory.remember(text)
        memory.conversations.append_user("talk", text)


Ask = Callable[[Memory, str], Sequence[Degraded]]

LANES: dict[str, Ask] = {
    "recall": lambda m, q: m.recall(q).degraded,
    "recall by words": lambda m, q: m.recall(q, mode="words").degraded,
    "recall by vectors": lambda m, q: m.recall(q, mode="vector").degraded,
    "a conversation": lambda m, q: m.recall_conversation("talk", q).degraded,
    "all conversations": lambda m, q: m.recall_conversation(None, q).degraded,
    "conversations by words": lambda m, q: m.recall_conversation(None, q, mode="words").degraded,
    "conversations by vectors": lambda m, q: m.recall_conversation(None, q, mode="vector").degraded,
    "a project": lambda m, q: m.recall_context(q).degraded,
    "several statements": lambda m, q: m.recall_context([q, "queue", q]).degraded,
    "warm-up": lambda m, q: m.warm_up(q).degraded,
    "everything": lambda m, q: m.search(q).degraded,
    "tool calls": lambda m, q: m.search(q, kinds=["tool_call"]).degraded,
}


@pytest.mark.promise("recall.length")
@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("question", ["where did the queue go? ", "東京都の天気", "?!", "x"])
def test_no_lane_embeds_more_than_is_read(
    memory: Memory, counting: Counting, lane: str, question: str
) -> None:
    """300,000 characters cost one vector of a few thousand bytes, and `degraded` says so.

    Marks alone ask nothing, which may be said instead, of few as of many.
    """
    text = (question * LONG)[:LONG]
    memory.ready(60)
    counting.asked.clear()
    told = LANES[lane](memory, text)
    assert all(size <= MOST_BYTES for size in counting.asked), counting.asked
    assert len(counting.asked) <= 1
    assert "query" in {one.part for one in told}
    is_blank = question == "?!" and BLANK in told
    assert is_blank or f"{LONG:,} characters" in str(told)
    short_answer = LANES[lane](memory, question)
    assert BLANK in short_answer if is_blank else "query" not in {one.part for one in short_answer}


@pytest.mark.promise("recall.length")
@pytest.mark.parametrize("ends", ["{ask} {pasted}", "{pasted} {ask}"])
def test_a_question_before_or_after_a_pasted_text_is_read(memory: Memory, ends: str) -> None:
    """Both ends are kept: every lane answers as for what is read, words, names and times alike."""
    text = ends.format(ask="Which walnuts are for Ada?", pasted=PASTED)
    longer = ends.format(ask="Which walnuts are for Ada?", pasted=PASTED * 2)
    found = memory.recall(text, top_k=3)
    assert found.hits == memory.recall(longer, top_k=3).hits
    assert "walnuts are for Ada" in {hit.text for hit in found}
    turns = memory.recall_conversation(None, text, top_k=3)
    assert turns.hits == memory.recall_conversation(None, longer, top_k=3).hits
    assert memory.search(text).hits == memory.search(longer).hits
    focus = memory.recall_context(text).focus
    assert focus == memory.recall_context(longer).focus
    assert {"walnut", "ada"} <= {term.rstrip("s") for term in focus.terms}


@pytest.mark.promise("recall.length")
def test_what_lies_between_the_ends_is_not_read(memory: Memory) -> None:
    """No name, time or word out of the middle counts, on any lane."""
    around = "of this and that, " * 5_000
    asked = memory.recall(around + "walnuts are for Ada " + around, mode="words")
    assert not asked.hits
    turns = memory.recall_conversation(None, around + "walnuts, in May 2023 " + around)
    assert all(not hit.factors.get("time") and not hit.factors.get("words") for hit in turns)


@pytest.mark.promise("recall.length")
def test_deep_questions_and_their_programs_are_bounded(
    memory: Memory, counting: Counting, tmp_path: Path
) -> None:
    """A deep question, and what its program searches for, have limits of their own."""
    with pytest.raises(InvalidInput, match="4000"):
        memory.deep_recall(PASTED)
    script = Script("```python\nprint(search('walnuts for Ada ' * 200))\n```")
    with Memory.open(tmp_path / "asked", embedder=counting, model=script.model) as other:
        _fill(other)
        other.ready(60)
        counting.asked.clear()
        found = other.deep_recall("Which walnuts?", scope="all_sessions")
    assert "may have at most 2000 characters" in str(found.steps)
    assert max(counting.asked) <= MOST_BYTES


@pytest.mark.promise("recall.length")
def test_every_surface_says_what_was_read(tmp_path: Path) -> None:
    """Over HTTP, by MCP, in a shell and in a store of LangGraph the answer comes, and says so."""
    home = tmp_path / "home"
    with served(home) as (client, memory):
        _fill(memory)
        for road, field in (
            ("/v1/recall", "query"),
            ("/v1/conversations/recall", "query"),
            ("/v1/context/recall", "focus"),
        ):
            sent = client.post(road, json={field: PASTED})
            assert sent.status_code == 200, sent.text
            assert "query" in {one["part"] for one in sent.json()["degraded"]}, road

    async def by_mcp() -> None:
        async with connected(home) as session:
            for tool in ("recall_memory", "recall_conversation"):
                found = await call(session, tool, question=PASTED)
                assert "query" in {one["part"] for one in found["degraded"]}, tool

    anyio.run(by_mcp)
    # A system takes arguments of 128 KiB at most.
    done = subprocess.run(
        [SCRIPT, "--home", home, "recall", "--json", PASTED[:100_000]],
        capture_output=True,
        text=True,
        check=True,
        env={
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "HOME": str(tmp_path),
        },
    )
    assert "query" in {one["part"] for one in json.loads(done.stdout)["degraded"]}


@pytest.mark.promise("recall.length")
def test_a_store_of_langgraph_asks_with_what_is_read(tmp_path: Path, counting: Counting) -> None:
    """A search of an item with a long text embeds no more than any other."""
    from anaphora.adapters.langgraph import AnaphoraStore

    with Memory.open(tmp_path / "home", embedder=counting) as memory:
        store = AnaphoraStore(memory)
        store.put(("a",), "k", {"text": "cranes are oiled"})
        memory.ready(60)
        counting.asked.clear()
        assert store.search(("a",), query=PASTED)
        assert max(counting.asked) <= MOST_BYTES
