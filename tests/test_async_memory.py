"""`AsyncMemory` at work: nothing blocks the event loop, and cancelling leaves nothing half-done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anaphora import AsyncMemory, ImportedConversation, ImportedTurn

Clock = Callable[[], datetime]


def opening(tmp_path: Path, clock: Clock) -> Any:
    return AsyncMemory.open(tmp_path / "home", embedder="hashing", clock=clock)


def test_progress_and_events_come_in_the_event_loop(tmp_path: Path, clock: Clock) -> None:
    """Callbacks run in the thread of the loop, in order, and before the call returns."""
    turns = tuple(
        ImportedTurn(f"k{n}", f"k{n - 1}" if n else None, "user", f"w{n}") for n in range(3)
    )
    chats = [ImportedConversation("test", f"c{n}", f"c{n}", turns) for n in range(5)]

    async def scenario() -> None:
        main = threading.get_ident()
        seen: list[tuple[int, str, int]] = []
        events: list[tuple[int, str]] = []
        async with opening(tmp_path, clock) as memory:
            memory.on("cache", lambda event: events.append((threading.get_ident(), event.type)))
            await memory.import_(
                chats, progress=lambda *told: seen.append((threading.get_ident(), *told[:2]))
            )
            done = [count for _, label, count in seen if label == "conversations"]
            assert done == sorted(done)
            assert done[-1] == 5
            await memory.ready()
            for _ in range(2):
                await memory.recall_conversation(None, "w1", mode="vector")
            assert [kind for _, kind in events] == ["miss", "hit"]
        assert {thread for thread, *_ in [*seen, *events]} == {main}

    asyncio.run(scenario())


@pytest.mark.promise("async.cancelled")
def test_a_cancelled_write_is_whole_and_closing_waits_for_it(tmp_path: Path, clock: Clock) -> None:
    """A write whose task is cancelled while its thread is at work is finished before `close`
    returns; one that had not begun is not made."""
    begun, go = threading.Event(), threading.Event()

    def slow_clock() -> datetime:
        begun.set()
        assert go.wait(30)
        return clock()

    async def scenario() -> None:
        memory = await AsyncMemory.open(tmp_path / "home", embedder="hashing", clock=slow_clock)
        task = asyncio.create_task(memory.conversations.append_user("a", "written all the same"))
        await asyncio.to_thread(begun.wait, 30)
        # The other threads of the pool are taken, so that one call more has to wait.
        others = [
            asyncio.create_task(memory.conversations.append_user(f"b{n}", "x")) for n in range(7)
        ]
        await asyncio.sleep(0)
        waiting = asyncio.create_task(memory.conversations.append_user("late", "never said"))
        await asyncio.sleep(0)
        for one in (task, waiting):
            one.cancel()
            with pytest.raises(asyncio.CancelledError):
                await one
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        assert not closing.done()
        go.set()
        await closing
        assert all(await asyncio.gather(*others))

    asyncio.run(scenario())

    async def look() -> None:
        async with opening(tmp_path, clock) as memory:
            assert [turn.text for turn in await memory.conversations.recent("a")] == [
                "written all the same"
            ]
            assert await memory.conversations.get("late") is None

    asyncio.run(look())


def test_the_callers_context_is_seen_in_the_thread(tmp_path: Path, clock: Clock) -> None:
    """Context variables (a trace, a request's id) reach what runs in the worker."""
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[str] = []

    def watching_clock() -> datetime:
        seen.append(request.get())
        return clock()

    async def scenario() -> None:
        async with AsyncMemory.open(
            tmp_path / "home", embedder="hashing", clock=watching_clock
        ) as memory:
            request.set("r1")
            await memory.conversations.append_user("a", "x")

    asyncio.run(scenario())
    assert seen
    assert set(seen) == {"r1"}
