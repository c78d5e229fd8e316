"""Time limits and cancelling: what a recall does when its embedder does not answer."""

from __future__ import annotations

import asyncio
import math
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from anaphora import AsyncMemory, Cancellation, Memory, NewTurn, Vector, Vectors
from anaphora.errors import Cancelled, InvalidInput
from anaphora.testing import WordHashingEmbedder, server_app

LONG_WAIT = 60
ASKED = "where does the heron nest?"
Ask = Callable[[Any], Any]


class Stuck(WordHashingEmbedder):
    """Answers until it is stuck, and then not before it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()
        self.entered = threading.Semaphore(0)
        self.free.set()

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        self._wait()
        return super().embed(texts)

    def embed_query(self, text: str) -> Vector:
        self._wait()
        return super().embed_query(text)

    def _wait(self) -> None:
        self.entered.release()
        assert self.free.wait(LONG_WAIT)


RECALLS: dict[str, Ask] = {
    "recall": lambda memory: memory.recall(ASKED, **memory.limit),
    "recall_conversation": lambda memory: memory.recall_conversation(None, ASKED, **memory.limit),
    "search": lambda memory: memory.search(ASKED, **memory.limit),
    "recall_context": lambda memory: memory.recall_context(ASKED, **memory.limit),
}


class Limited:
    """A memory whose recalls take these arguments, too."""

    def __init__(self, memory: Any, **limit: Any) -> None:
        self._memory = memory
        self.limit = limit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


@pytest.fixture
def embedder() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.free.set()


@pytest.fixture
def memory(tmp_path: Path, embedder: Stuck) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder=embedder) as opened:
        opened.conversations.append_user("chat", "The heron has its nest on the island.")
        opened.remember("The heron may nest in the reeds.")
        opened.observe("Decided: the nest of the heron is not disturbed.", kind="decision")
        assert opened.ready(LONG_WAIT)
        yield opened
        embedder.free.set()


@pytest.mark.promise("recall.timeout")
@pytest.mark.parametrize("name", RECALLS)
def test_words_answer_within_the_time(memory: Memory, embedder: Stuck, name: str) -> None:
    """The embedder never answers; the recall does, and says that only words were searched."""
    embedder.free.clear()
    found = RECALLS[name](Limited(memory, timeout=0.2))
    assert found.memories if name == "recall_context" else found.hits
    assert "only words were searched: the time limit of 0.2 s is over" in str(found.degraded)
    embedder.free.set()
    assert "time limit" not in str(RECALLS[name](Limited(memory, timeout=LONG_WAIT)).degraded)


@pytest.mark.promise("recall.timeout")
def test_what_waits_for_its_vector_is_found_by_words_in_time(
    memory: Memory, embedder: Stuck
) -> None:
    """Neither new turns nor new memories are waited for longer than the call may take."""
    embedder.free.clear()
    memory.conversations.append_user("chat", "The kingfisher dives at noon.")
    hits = memory.recall_conversation("chat", "when does the kingfisher dive?", timeout=0.2)
    assert hits[0].text == "The kingfisher dives at noon."
    assert "vectors" in {part.part for part in hits.degraded}
    assert memory.search("kingfisher", timeout=0).hits[0].kind == "turn"


@pytest.mark.promise("recall.timeout")
def test_conversations_that_there_was_no_time_to_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall without time reads a few threads and counts the others; the next one reads on."""
    # Nothing reads them behind the calls: another program wrote them, and its index is lost.
    monkeypatch.setattr("anaphora.container.namespace._OPENING", 10 * LONG_WAIT)
    with Memory.open(tmp_path / "home", embedder="hashing") as writer:
        for number in range(200):
            writer.conversations.append_user(f"t{number}", f"word{number} of the heron")
    shutil.rmtree(tmp_path / "home" / "index")
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        late = memory.recall_conversation(None, "heron", top_k=300, timeout=0)
        assert 0 < len(late) < 200
        told = [part.reason for part in late.degraded if part.part == "conversations"]
        assert "there was no time to read it" in told[0]
        assert f"{200 - len(late)} have changed" in told[0]


@pytest.mark.promise("recall.timeout")
@pytest.mark.parametrize("name", RECALLS)
@pytest.mark.parametrize("timeout", [-1, math.nan, math.inf, "soon"])
def test_what_is_no_time_limit_is_refused(memory: Memory, name: str, timeout: Any) -> None:
    """A number of seconds, 0 or more."""
    with pytest.raises(InvalidInput):
        RECALLS[name](Limited(memory, timeout=timeout))


@pytest.mark.promise("recall.cancelled")
@pytest.mark.parametrize("name", RECALLS)
def test_another_thread_ends_a_recall(memory: Memory, embedder: Stuck, name: str) -> None:
    """While the embedder is stuck, `cancel()` ends the call; the memory goes on as before."""
    cancellation = Cancellation()

    def ask() -> Any:
        with cancellation:
            return RECALLS[name](Limited(memory))

    while embedder.entered.acquire(blocking=False):
        pass
    embedder.free.clear()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        assert embedder.entered.acquire(timeout=LONG_WAIT)
        cancellation.cancel()
        with pytest.raises(Cancelled):
            asking.result(LONG_WAIT)
    embedder.free.set()
    found = RECALLS[name](Limited(memory))
    assert found.memories if name == "recall_context" else found.hits


@pytest.mark.promise("recall.cancelled")
def test_a_cancellation_ends_recalls_alone(memory: Memory) -> None:
    """Inside one that was cancelled a recall ends at once, a write is made; outside all is well."""
    cancellation = Cancellation()
    cancellation.cancel()
    with cancellation:
        for ask in RECALLS.values():
            with pytest.raises(Cancelled):
                ask(Limited(memory))
        kept = memory.remember("The stork came back in March.")
        memory.conversations.append_user("chat", "The stork is late.")
    assert memory.recall("stork")[0].id == kept.id
    assert memory.recall_conversation("chat", "stork")[0].index == 1


@pytest.mark.promise("recall.cancelled")
def test_tasks_that_are_cancelled_free_their_threads(tmp_path: Path, embedder: Stuck) -> None:
    """More cancelled recalls than there are threads leave threads for the next call."""

    async def scenario() -> None:
        async with AsyncMemory.open(tmp_path / "home", embedder=embedder) as memory:
            await memory.remember("The heron may nest in the reeds.")
            await memory.conversations.append_user("chat", "The heron nests.")
            embedder.free.clear()
            asks = list(RECALLS.values()) * 4
            tasks = [asyncio.ensure_future(ask(Limited(memory))) for ask in asks]
            entered = asyncio.to_thread(embedder.entered.acquire, timeout=LONG_WAIT)
            assert await entered
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(one) for one in done} == {asyncio.CancelledError}
            assert (await asyncio.wait_for(memory.stats(), LONG_WAIT)).turns == 1
            embedder.free.set()

    asyncio.run(scenario())


@pytest.mark.promise("recall.timeout")
def test_a_server_takes_the_time_limit(memory: Memory, embedder: Stuck) -> None:
    """Each recall over HTTP, too; the answer says what the limit cost."""
    server = server_app(memory, page=None)
    with TestClient(server, base_url="http://127.0.0.1:7411") as client:
        embedder.free.clear()
        for path, body in (
            ("recall", {"query": ASKED}),
            ("search", {"query": ASKED}),
            ("conversations/recall", {"query": ASKED}),
            ("context/recall", {"focus": ASKED}),
        ):
            found = client.post(f"/v1/{path}", json={**body, "timeout": 0.2})
            assert found.status_code == 200, found.text
            assert "the time limit of 0.2 s is over" in found.text
            assert client.post(f"/v1/{path}", json={**body, "timeout": -1}).status_code == 422
        embedder.free.set()


class Translated(WordHashingEmbedder):
    """Hashed words after some were put for others: near in meaning without a common word.

    It gets stuck after so many turns.
    """

    name = "translated:1"

    def __init__(self, most: float = math.inf) -> None:
        super().__init__()
        self.most = most
        self.free = threading.Event()

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        # Those by which its cosines are calibrated are no turns.
        turns = sum(text.startswith(("Note", "My sister")) for text in texts)
        self.most -= turns
        if turns and self.most < 0:
            self.free.wait(10)
        return super().embed([_translated(text) for text in texts])

    def embed_query(self, text: str) -> Vector:
        return super().embed_query(_translated(text))


def _translated(text: str) -> str:
    return text.replace("food", "allergic").replace("eat", "peanuts").replace("she", "sister")


def _talk(count: int, answer: int) -> list[NewTurn]:
    turns = [
        NewTurn("user", f"Note {n}: the kettle was moved near the harbour.") for n in range(count)
    ]
    turns[answer] = NewTurn("user", "My sister is allergic to peanuts.")
    return turns


FOOD = "which food must she never eat?"


@pytest.mark.promise("recall.backlog")
def test_a_backlog_without_a_common_word_is_answered(tmp_path: Path) -> None:
    """Three hundred new turns, none with a word of the question: the first recall finds it."""
    with Memory.open(tmp_path / "home", embedder=Translated()) as memory:
        memory.conversations.extend("chat", _talk(300, 100))
        assert memory.recall_conversation("chat", FOOD)[0].index == 100


@pytest.mark.promise("recall.backlog")
def test_of_a_backlog_that_takes_too_long_the_latest_turns_answer(tmp_path: Path) -> None:
    """The embedder gets no further than two batches: the latest turns have vectors, it says so."""
    embedder = Translated(most=256)
    with Memory.open(tmp_path / "home", embedder=embedder) as memory:
        memory.conversations.extend("chat", _talk(2_000, 1_990))
        found = memory.recall_conversation("chat", FOOD, timeout=4)
        assert found[0].index == 1_990
        assert "have no vector yet" in str(found.degraded)
        embedder.free.set()


@pytest.mark.promise("recall.backlog")
def test_turns_with_words_of_the_question_get_their_vectors_first(tmp_path: Path) -> None:
    """Of a long backlog those that words find are compared in meaning, however old they are."""
    embedder = Translated(most=256)
    with Memory.open(tmp_path / "home", embedder=embedder) as memory:
        memory.conversations.extend("chat", _talk(2_000, 1_000))
        found = memory.recall_conversation("chat", "is my sister allergic to anything?", timeout=4)
        assert found[0].index == 1_000
        assert found[0].factors["meaning"] > 0
        embedder.free.set()
