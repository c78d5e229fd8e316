"""ADK's own sessions, events and tools over the service; what its in-memory one does, it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.memory import BaseMemoryService, InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types
from tests.adapters.blocks import BEGIN, END
from tests.adapters.pages import run_page
from tests.tokens import token_cost

from anaphora import AsyncMemory
from anaphora.adapters.google_adk import AnaphoraMemoryService, namespace_of_user

pytestmark = pytest.mark.enable_socket

PORT = "The staging database of Ferrywell listens on port 5433."
QUESTION = "which port does the staging database of Ferrywell listen on?"


def run(scenario: Callable[[AsyncMemory], Awaitable[None]], home: Path) -> None:
    async def opened() -> None:
        async with AsyncMemory.open(home) as memory:
            await memory.ready()
            await scenario(memory)

    asyncio.run(opened())


def content(*texts: str, role: str = "user") -> types.Content:
    return types.Content(role=role, parts=[types.Part.from_text(text=text) for text in texts])


def event(name: str, text: str, author: str = "user", **more: Any) -> Event:
    at = 1_770_000_000.0 + int(name[1:])
    return Event(
        id=name, author=author, invocation_id="i", timestamp=at, content=content(text), **more
    )


def session(*events: Event, name: str = "monday", user: str = "mara") -> Session:
    return Session(id=name, app_name="parcels", user_id=user, events=list(events))


WHO: dict[str, Any] = {"app_name": "parcels", "user_id": "mara"}


async def texts(service: BaseMemoryService, query: str = QUESTION, **who: str) -> list[str]:
    found = await service.search_memory(query=query, **{**WHO, **who})
    return [str((one.content.parts or [])[0].text) for one in found.memories]


@pytest.mark.promise("adapters.google_adk")
@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_a_session_may_be_added_again_and_again(tmp_path: Path, whose: str) -> None:
    """Each event is found once; what came since is added; a deleted one stays gone."""

    async def scenario(memory: AsyncMemory) -> None:
        service: BaseMemoryService = InMemoryMemoryService()
        if whose == "ours":
            service = AnaphoraMemoryService(memory)
        first = event("e1", PORT)
        await service.add_session_to_memory(session(first))
        await service.add_session_to_memory(session(first, event("e2", "Noted.", "helper")))
        assert (await texts(service)).count(PORT) == 1
        entry = (await service.search_memory(query=PORT, **WHO)).memories[0]
        assert entry.timestamp
        assert entry.timestamp.startswith("2026-02-0")
        await service.delete_memory(memory_id=entry.id, **WHO)
        await service.add_session_to_memory(session(first, event("e3", "Thanks.")))
        assert PORT not in await texts(service)
        await service.delete_memory(memory_id="unknown", **WHO)
        await service.delete_memory(memory_id=None, **WHO)

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.google_adk")
@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_users_and_apps_stay_apart(tmp_path: Path, whose: str) -> None:
    """Neither another user nor another app finds it, however their names are put together."""

    async def scenario(memory: AsyncMemory) -> None:
        service: BaseMemoryService = InMemoryMemoryService()
        if whose == "ours":
            service = AnaphoraMemoryService(memory)
        await service.add_session_to_memory(session(event("e1", PORT)))
        assert await texts(service) == [PORT]
        assert await texts(service, user_id="rafi") == []
        assert await texts(service, app_name="other") == []
        assert await texts(service, query="") == []

    run(scenario, tmp_path)
    names = [("a", "bc"), ("ab", "c"), ("a-b", "c"), ("a", "b-c"), ("a/../b", "c"), ("ä", "\0")]
    assert len({namespace_of_user(*one) for one in names}) == len(names)


@pytest.mark.promise("adapters.google_adk")
def test_events_come_in_pieces_as_one_conversation(tmp_path: Path) -> None:
    """Deltas stand behind what is known, in one thread, verbatim; what is no speech is left out."""

    async def scenario(memory: AsyncMemory) -> None:
        service = AnaphoraMemoryService(memory)
        given = f"{BEGIN}\n- {PORT}\n{END}\nand now?"
        one, two = event("e1", PORT), event("e2", "Noted.", "helper")
        await service.add_events_to_memory(events=[one, two], session_id="s", **WHO)
        more = [two, event("e3", given), event("e4", "half", "helper", partial=True)]
        thought = event("e5", "hm", "helper")
        assert thought.content is not None
        thought.content.parts = [types.Part(text="hm", thought=True)]
        await service.add_events_to_memory(events=[*more, thought], session_id="s", **WHO)
        await service.add_events_to_memory(events=[], **WHO)
        scope = memory.scoped(namespace_of_user(**WHO))
        thread = await scope.conversations.get("google_adk_s")
        assert thread is not None
        assert [(t.role, t.text) for t in thread.turns] == [
            ("user", PORT),
            ("assistant", "Noted."),
            ("user", "and now?"),
        ]
        assert len(await scope.conversations.list()) == 1

    run(scenario, tmp_path)


@pytest.mark.promise("adapters.google_adk")
def test_facts_are_remembered_and_the_budget_is_kept(tmp_path: Path) -> None:
    """Explicit memories are found with the rest; an answer never costs more than its budget."""

    async def scenario(memory: AsyncMemory) -> None:
        service = AnaphoraMemoryService(memory, budget=60, top_k=10)
        facts = [f"{PORT} Since day {n}, {'long ' * n}" for n in range(10)]
        entries = [MemoryEntry(content=content(text)) for text in facts]
        await service.add_memory(memories=entries, **WHO)
        found = await texts(service)
        assert found
        assert sum(token_cost(text) for text in found) <= 60
        (first, *_) = (await service.search_memory(query=QUESTION, **WHO)).memories
        await service.delete_memory(memory_id=first.id, **WHO)
        assert first.id not in {
            one.id for one in (await service.search_memory(query=QUESTION, **WHO)).memories
        }

    run(scenario, tmp_path)


@pytest.mark.promise("docs.adapters")
def test_its_page_runs(tmp_path: Path) -> None:
    """The example is a whole agent with ADK's runner; the page shows what it prints."""
    assert run_page("google-adk.md", tmp_path) == []
