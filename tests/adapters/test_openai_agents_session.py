"""A session of OpenAI Agents on Anaphora behaves as the framework's own, and keeps every word."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from agents import SQLiteSession
from agents.memory import Session, SessionSettings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.adapters.openai_agents import AnaphoraSession
from anaphora.errors import Closed, InvalidInput

ROOT = Path(__file__).resolve().parents[2]
# An event loop makes a pair of sockets for itself.
pytestmark = pytest.mark.enable_socket

ITEMS: list[Any] = [
    {"role": "user", "content": "Our staging database listens on port 5433."},
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Noted: 5433.", "annotations": [], "logprobs": []}
        ],
    },
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {"role": "user", "content": [{"type": "input_text", "text": "and "}, {"type": "input_image"}]},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
    },
    {"role": "user", "content": ""},
    {"role": "user", "content": "  two spaces  \n"},
    {"role": "user", "content": "Our staging database listens on port 5433."},
    {"id": "r1", "type": "reasoning", "summary": []},
    {"role": "developer", "content": "[redacted]"},
    {"role": "user", "content": "x", "extra": {"anaphora_words": True}},
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


@pytest.fixture(params=["ours", "theirs"])
def session(request: pytest.FixtureRequest, memory: Memory) -> Iterator[Session]:
    """Every test of the contract runs on both."""
    if request.param == "ours":
        yield AnaphoraSession("s", memory)
        return
    other = SQLiteSession("s")
    yield other
    other.close()


@pytest.mark.promise("adapters.openai_agents")
def test_items_come_back_exactly(session: Session) -> None:
    """Items come back as they were added, in their order, the latest when limited."""

    async def scenario() -> None:
        assert await session.get_items() == []
        await session.add_items(ITEMS[:4])
        await session.add_items([])
        await session.add_items(ITEMS[4:])
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=3) == ITEMS[-3:]
        assert await session.get_items(limit=100) == ITEMS
        assert await session.get_items(limit=0) == []

    asyncio.run(scenario())


@pytest.mark.promise("adapters.openai_agents")
def test_items_are_taken_back(session: Session) -> None:
    """`pop_item` gives the latest and removes it from the history; `clear_session` empties it."""

    async def scenario() -> None:
        assert await session.pop_item() is None
        await session.add_items(ITEMS[:3])
        assert await session.pop_item() == ITEMS[2]
        assert await session.pop_item() == ITEMS[1]
        await session.add_items([ITEMS[3]])
        assert await session.get_items() == [ITEMS[0], ITEMS[3]]
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items([ITEMS[0]])
        assert await session.get_items() == [ITEMS[0]]

    asyncio.run(scenario())


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
Items = st.dictionaries(st.sampled_from(["role", "content", "type", "id", "x"]), Json, min_size=1)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=st.lists(Items | st.sampled_from(ITEMS), max_size=5))
def test_any_item_comes_back(tmp_path_factory: pytest.TempPathFactory, items: list[Any]) -> None:
    """Whatever JSON object an item is, another process gets it back."""
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        asyncio.run(AnaphoraSession("s", memory).add_items(items))
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        assert asyncio.run(AnaphoraSession("s", memory).get_items()) == items


@pytest.mark.promise("adapters.openai_agents")
def test_turns_are_recalled_by_their_words(memory: Memory) -> None:
    """What was said in a session is recalled as any conversation; what was taken back too."""
    session = AnaphoraSession("s", memory)
    asyncio.run(session.add_items(ITEMS))
    (hit,) = memory.recall_conversation("s", "which port does staging listen on?", top_k=1)
    assert hit.text == ITEMS[0]["content"]
    assert [one.text for one in hit.occurrences] == [hit.text]
    asyncio.run(session.pop_item())
    thread = memory.conversations.get("s")
    assert thread is not None
    assert [turn.text for turn in thread.turns][-2:] == ["x", "(The item before was taken back.)"]


def test_a_limit_of_the_session_counts(memory: Memory) -> None:
    """The session's own settings limit what is given back, unless the call says otherwise."""
    session = AnaphoraSession("s", memory, session_settings=SessionSettings(limit=2))
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items()) == ITEMS[-2:]
    assert asyncio.run(session.get_items(limit=3)) == ITEMS[-3:]


def test_what_is_no_json_is_refused(memory: Memory) -> None:
    """An item that cannot be kept is a typed error, and nothing of the call is kept."""
    session = AnaphoraSession("s", memory)
    with pytest.raises(InvalidInput):
        asyncio.run(
            session.add_items([ITEMS[0], cast("Any", {"role": "user", "content": object()})])
        )
    assert asyncio.run(session.get_items()) == []


def test_many_tasks_write_at_once(memory: Memory) -> None:
    """Items of tasks that run at once are all kept, none twice."""
    session = AnaphoraSession("s", memory)

    async def scenario() -> list[Any]:
        items: list[Any] = [{"role": "user", "content": f"item {n}"} for n in range(20)]
        await asyncio.gather(*(session.add_items([item]) for item in items))
        return list(await session.get_items())

    found = asyncio.run(scenario())
    assert sorted(item["content"] for item in found) == sorted(f"item {n}" for n in range(20))


@pytest.mark.promise("adapters.openai_agents_loops")
def test_threads_with_loops_of_their_own_write_at_once(session: Session) -> None:
    """A session may be used from threads, each with an event loop of its own, at the same time."""

    def talk(name: int) -> None:
        async def scenario() -> None:
            for n in range(5):
                await session.add_items([{"role": "user", "content": f"{name} says {n}"}])

        asyncio.run(scenario())

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(talk, range(6)))
    found: list[Any] = list(asyncio.run(session.get_items()))
    said = [item["content"] for item in found]
    assert sorted(said) == sorted(f"{name} says {n}" for name in range(6) for n in range(5))
    for name in range(6):
        own = [one for one in said if one.startswith(f"{name} ")]
        assert own == [f"{name} says {n}" for n in range(5)]


@pytest.mark.promise("adapters.openai_agents_loops")
def test_one_item_is_taken_back_once(memory: Memory) -> None:
    """Sessions on one history that take items back at the same time get different ones."""
    sessions = [AnaphoraSession("s", memory) for _ in range(4)]
    items: list[Any] = [{"role": "user", "content": f"item {n}"} for n in range(8)]

    async def scenario() -> list[Any]:
        await sessions[0].add_items(items)
        return await asyncio.gather(*(one.pop_item() for one in sessions for _ in range(2)))

    taken = asyncio.run(scenario())
    assert sorted(item["content"] for item in taken) == [item["content"] for item in items]
    assert asyncio.run(sessions[0].get_items()) == []


def test_settings_may_be_a_mapping(memory: Memory) -> None:
    """Settings come as the framework's own or as a mapping; a field that it lacks is named."""
    with pytest.raises(TypeError, match="limitt"):
        AnaphoraSession("s", memory, session_settings={"limitt": 2})
    session = AnaphoraSession("s", memory, session_settings={"limit": 2})
    assert session.session_settings == SessionSettings(limit=2)
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items()) == ITEMS[-2:]


@pytest.mark.parametrize("items", [[], ITEMS[:1]])
def test_a_closed_session_refuses(memory: Memory, items: list[Any]) -> None:
    """After `close` every call of the session says so; the memory and other sessions go on."""
    session = AnaphoraSession("s", memory)
    asyncio.run(session.add_items(ITEMS[:1]))
    session.close()
    calls = (
        lambda: session.add_items(items),
        session.get_items,
        session.pop_item,
        session.clear_session,
    )
    for call in calls:
        with pytest.raises(Closed, match="AnaphoraSession is closed"):
            asyncio.run(cast("Any", call()))
    assert issubclass(Closed, RuntimeError)
    assert asyncio.run(AnaphoraSession("s", memory).get_items()) == ITEMS[:1]


@pytest.mark.parametrize("items", [[], ITEMS[:1]])
def test_a_session_of_a_closed_memory_refuses(tmp_path: Path, items: list[Any]) -> None:
    """A session whose memory was closed takes nothing, not even nothing."""
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        session = AnaphoraSession("s", memory)
    with pytest.raises(Closed):
        asyncio.run(session.add_items(items))


def test_a_cancelled_call_is_finished(memory: Memory) -> None:
    """A call that is cancelled while it writes is finished before the next one begins."""
    session = AnaphoraSession("s", memory)
    items: list[Any] = [{"role": "user", "content": f"item {n}"} for n in range(200)]

    async def scenario() -> None:
        task = asyncio.ensure_future(session.add_items(items))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        kept = len(await session.get_items())
        assert kept in {0, 200}
        await session.add_items(items[:1])
        assert len(await session.get_items()) == kept + 1

    asyncio.run(scenario())


@pytest.mark.promise("adapters.openai_agents")
@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize(
    ("example", "said"),
    [
        ("openai_agents_session.py", ["I see 1 items.", "I see 3 items.", "recalled: Our staging"]),
        ("langgraph_store.py", ["Mara drinks green tea"]),
    ],
)
def test_the_examples_run(example: str, said: list[str]) -> None:
    """The shipped examples do what they say, with a stand-in for the model."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / example], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for words in said:
        assert words in done.stdout
