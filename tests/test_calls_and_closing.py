"""Listeners that fail, and closing while calls are under way."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from anaphora import AsyncMemory, Memory
from anaphora.errors import Closed, InvalidInput
from anaphora.testing import WordHashingEmbedder


class Held:
    """A place in a call at which it waits until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, *_: object) -> None:
        self.reached.set()
        assert self.let_go.wait(60)


class Answer(threading.Thread):
    """A call in a thread of its own, and what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.call = call
        self.value: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self.call()
        except BaseException as error:  # noqa: BLE001 - it is looked at by the test
            self.error = error


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.remember("The kettle is blue")
        memory.conversations.append_user("chat", "The kettle is blue")
        yield memory


@pytest.mark.promise("calls.listeners")
@pytest.mark.parametrize("event", ["cache", "remember", "recall"])
def test_a_listener_that_fails_is_logged(
    memory: Memory, event: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It breaks no call and keeps no other from hearing; each failure is logged with its place."""
    heard: list[object] = []

    def fails(value: object) -> None:
        raise RuntimeError("this listener is broken")

    memory.on(event, fails)
    memory.on(event, heard.append)
    with caplog.at_level(logging.ERROR, logger="anaphora"):
        made = memory.remember("The cup is green")
        found = memory.recall("which colour has the cup?")
        turns = memory.recall_conversation("chat", "the kettle")
    assert memory.get(made.id).text == found[0].text == "The cup is green"
    assert [hit.text for hit in turns] == ["The kettle is blue"]
    told = [record for record in caplog.records if record.name == "anaphora"]
    assert len(told) == len(heard) > 0
    for record in told:
        assert repr(event) in record.getMessage()
        assert record.exc_info is not None
        assert "this listener is broken" in str(record.exc_info[1])


@pytest.mark.promise("calls.listeners")
def test_what_cannot_listen_is_refused(memory: Memory) -> None:
    """An event that there is not, and a handler that cannot be called, are refused at once."""
    for event, handler, what in (
        ("forget", print, "event"),
        ("recall", 5, "handler"),
        ("recall", None, "handler"),
        (["recall"], print, "event"),
    ):
        with pytest.raises(InvalidInput) as refused:
            memory.on(event, handler)  # type: ignore[arg-type]
        assert refused.value.what == what
    assert memory.recall("kettle")


@pytest.mark.promise("calls.closing")
@pytest.mark.parametrize(
    "call",
    [
        lambda memory, held: memory.remember_many(["a cup", "a plate"], held),
        lambda memory, held: memory.index_project(Path(__file__).parent / "docs", progress=held),
        lambda memory, held: memory.recall("which colour has the kettle?"),
        lambda memory, held: memory.recall_conversation("chat", "the kettle"),
        lambda memory, held: memory.deep_recall("which colour has the kettle?"),
    ],
    ids=["remember_many", "index_project", "recall", "recall_conversation", "deep_recall"],
)
def test_closing_waits_for_a_call(tmp_path: Path, call: Callable[..., Any]) -> None:
    """A call of another thread ends with its answer, other calls are refused meanwhile."""
    held = Held()
    embedder = Slow(held)
    memory = Memory.open(tmp_path / "home", embedder=embedder)
    memory.remember("The kettle is blue")
    memory.conversations.append_user("chat", "The kettle is blue")
    embedder.armed = True
    answer = Answer(lambda: call(memory, held))
    assert held.reached.wait(60)
    closing = Answer(memory.close)
    while closing.is_alive():
        try:
            memory.list()
        except Closed:
            break
    assert closing.is_alive()
    held.let_go.set()
    answer.join(60)
    closing.join(60)
    assert (answer.error, closing.error) == (None, None)
    assert answer.value is not None
    with pytest.raises(Closed):
        memory.list()
    memory.close()


@pytest.mark.promise("calls.closing")
@pytest.mark.parametrize("database", [False, True], ids=["files", "postgresql"])
def test_closing_waits_for_a_turn(
    tmp_path: Path, database: bool, request: pytest.FixtureRequest
) -> None:
    """A turn that is being written is kept whole and acknowledged; a later one is refused."""
    held, armed = Held(), threading.Event()

    def clock() -> datetime:
        if armed.is_set():
            held()
        return datetime(2026, 4, 30, tzinfo=UTC)

    url = request.getfixturevalue("postgresql_url") if database else None
    memory = Memory.open(tmp_path / "home", database=url, embedder="hashing", clock=clock)
    chat = memory.conversations
    chat.append("chat", "user", "The kettle is blue", speaker="Mara")
    armed.set()
    answer = Answer(lambda: chat.append("chat", "user", "So is the cup", speaker="Rafi"))
    assert held.reached.wait(60)
    closing = Answer(memory.close)
    while closing.is_alive():
        try:
            memory.list()
        except Closed:
            break
    held.let_go.set()
    answer.join(60)
    closing.join(60)
    assert (answer.value, answer.error, closing.error) == (True, None, None)
    with pytest.raises(Closed):
        chat.append_user("chat", "Too late")
    armed.clear()
    with Memory.open(tmp_path / "home", database=url, embedder="hashing") as again:
        said = [(turn.speaker, turn.text) for turn in again.conversations.recent("chat")]
    assert said == [("Mara", "The kettle is blue"), ("Rafi", "So is the cup")]


class Slow(WordHashingEmbedder):
    """An embedder that waits at a question, once it is told to."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held
        self.armed = False

    def embed_query(self, text: str) -> Any:
        if self.armed:
            self.held()
        return super().embed_query(text)


@pytest.mark.promise("calls.closing")
def test_closing_waits_no_longer_than_it_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond its limit the home closes, says so, and the call ends in `Closed`."""
    held = Held()
    memory = Memory.open(tmp_path / "home", embedder="hashing")
    answer = Answer(lambda: memory.import_(_export(tmp_path), progress=held))
    assert held.reached.wait(60)
    with caplog.at_level(logging.WARNING, logger="anaphora"):
        memory.close(timeout=0)
    assert "under way" in caplog.text
    held.let_go.set()
    answer.join(60)
    assert isinstance(answer.error, Closed)
    for wrong in (float("nan"), "soon", True):
        with pytest.raises(InvalidInput):
            memory.close(timeout=wrong)  # type: ignore[arg-type]


def _export(folder: Path) -> Path:
    with Memory.open(folder / "other", embedder="hashing") as other:
        other.remember_many([f"memory {n}" for n in range(3)])
        other.export(folder / "export.jsonl")
    return folder / "export.jsonl"


@pytest.mark.promise("calls.closing")
@pytest.mark.parametrize("event", ["cache", "remember", "recall"])
def test_a_listener_may_close(memory: Memory, event: str) -> None:
    """Closing from within a call does not wait for that call; nobody waits for ever."""
    memory.on(event, lambda _: memory.close())

    def calls() -> None:
        memory.remember("The cup is green")
        memory.recall("which colour has the cup?")

    answer = Answer(calls)
    answer.join(60)
    assert not answer.is_alive()
    assert answer.error is None or isinstance(answer.error, Closed)
    with pytest.raises(Closed):
        memory.list()


@pytest.mark.promise("calls.closing")
def test_two_calls_that_both_close(memory: Memory) -> None:
    """Calls of two threads that close from within do not wait for each other."""
    meeting = threading.Barrier(2)

    def close(_: object) -> None:
        meeting.wait(60)
        memory.close()

    memory.on("recall", close)
    answers = [Answer(lambda: memory.recall_conversation("chat", "kettle")) for _ in range(2)]
    for answer in answers:
        answer.join(60)
        assert not answer.is_alive()
        assert answer.error is None or isinstance(answer.error, Closed)


@pytest.mark.promise("calls.closing")
def test_the_asynchronous_facade_waits_as_well(tmp_path: Path) -> None:
    """`AsyncMemory.close` waits for a call whose task was cancelled, and takes the same limit."""
    held = Held()
    embedder = Slow(held)

    async def scenario() -> None:
        memory = await AsyncMemory.open(tmp_path / "home", embedder=embedder)
        made = await memory.remember("The kettle is blue")
        embedder.armed = True
        task = asyncio.create_task(memory.recall("which colour has the kettle?"))
        await asyncio.to_thread(held.reached.wait, 60)
        closing = asyncio.create_task(memory.close(timeout=60.0))
        await asyncio.sleep(0)
        assert not closing.done()
        held.let_go.set()
        assert [hit.id for hit in await task] == [made.id]
        await closing

    asyncio.run(scenario())


AT_THE_END = """
import sys, threading
from anaphora import Memory

memory = Memory.open(sys.argv[1], embedder="hashing")
reached = threading.Event()

def stay(*_):
    reached.set()
    threading.Event().wait()

memory.on("remember", stay)
threading.Thread(target=lambda: memory.remember("The kettle is blue"), daemon=True).start()
assert reached.wait(60)
print("kept")
"""


@pytest.mark.promise("calls.closing")
def test_the_end_of_a_process_waits_for_no_call_for_ever(tmp_path: Path) -> None:
    """A program that ends while a thread of its own is stuck in a call does end."""
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, tmp_path / "home"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "kept"), done.stderr
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        assert [one.text for one in memory.list()] == ["The kettle is blue"]


LATE = """
import sys, threading
from anaphora import Memory
from anaphora.testing import ScriptedModel
from anaphora.errors import SandboxError

PROGRAM = [
    "print(llm_query_batched(['how many?', 'how often?']))",
    "submit('Once.', ['chat#0'])",
]

def reply(messages):
    if "writing Python" not in messages[0].text:
        return "one"
    return "```python\\n" + PROGRAM[len(messages) // 2 - 1] + "\\n```"

if sys.argv[2] == "opened":
    opened = Memory.open(sys.argv[1], embedder="hashing", warm=False)

def late():
    threading.main_thread().join()
    memory = opened if sys.argv[2] == "opened" else Memory.open(
        sys.argv[1], embedder=sys.argv[3], model=ScriptedModel(reply)
    )
    memory.remember("The kettle is blue")
    memory.remember_many(["The cup is green", "The plate is white"])
    memory.conversations.append_user("chat", "The kettle is blue")
    print(memory.recall("kettle")[0].text, len(memory.recall_conversation(None, "kettle")))
    print(memory.recall_context("the kettle").quality, memory.stats().memories)
    if sys.argv[2] == "late":
        question = "How often was the kettle blue?"
        try:
            answer = memory.deep_recall(question, scope="all_sessions")
        except SandboxError as error:
            # Nothing could watch over the code: none was run.
            assert sys.version_info >= (3, 12) and "main thread" in error.reason, error
        else:
            assert answer.answer == "Once.", answer
            assert [call.answer for call in answer.steps[0].sub_calls] == ["one", "one"], answer
    memory.close()
    print("closed")

threading.Thread(target=late).start()
"""


@pytest.mark.promise("calls.late_threads")
@pytest.mark.parametrize("words", [("opened", "hashing"), ("late", "hashing"), ("late", "minilm")])
def test_a_thread_that_outlives_the_main_thread(tmp_path: Path, words: tuple[str, str]) -> None:
    """Its first use of a memory, opened before or by itself, works as any other."""
    done = subprocess.run(
        [sys.executable, "-c", LATE, tmp_path / "home", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["The kettle is blue 1", "weak 3", "closed"], done.stderr
    assert done.stderr == ""


class Noting(WordHashingEmbedder):
    """Notes in which threads it is asked."""

    def __init__(self) -> None:
        super().__init__(48)
        self.threads: set[threading.Thread] = set()

    def embed_query(self, text: str) -> Any:
        self.threads.add(threading.current_thread())
        return super().embed_query(text)


@pytest.mark.promise("recall.timeout")
def test_no_thread_is_begun_for_each_question_with_a_time_limit(tmp_path: Path) -> None:
    """One thread embeds one question after the other, and each call may still give up."""
    embedder = Noting()
    with Memory.open(tmp_path, embedder=embedder) as memory:
        memory.remember("Mara keeps the key.")
        assert memory.recall("who keeps the key?", timeout=30).hits
        embedder.threads.clear()
        for number in range(12):
            memory.recall(f"who keeps the key number {number}?", timeout=30)
        assert len(embedder.threads) == 1
        assert threading.current_thread() not in embedder.threads
