"""Homes to look after: with threads, notes and memories, clear or sealed, on either database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anaphora.container.home import Container
from anaphora.core.config import load_settings
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rules import draft_memory, put_all
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.sidecar import TurnNote
from anaphora.values.conversations import NewTurn
from anaphora.values.memories import MemoryRecord, NewMemory

OpenParts = Callable[..., Container]


@pytest.fixture
def open_parts(tmp_path: Path) -> Iterator[OpenParts]:
    """Opens homes by name under the test's folder, as another program would each time."""
    opened: list[Container] = []

    def open_one(
        name: str = "home", *, database: str | None = None, encrypt: Any = None
    ) -> Container:
        settings = load_settings(tmp_path / name, database=database)
        opened.append(Container.open(settings, encrypt=encrypt, embedder="hashing"))
        return opened[-1]

    yield open_one
    for parts in opened:
        parts.close()


@pytest.fixture
def parts(open_parts: OpenParts) -> Container:
    """An empty clear home."""
    return open_parts()


class HomeWriter:
    """Puts things into a home, as the facade does."""

    def __init__(self, parts: Container, clock: Callable[[], datetime]) -> None:
        self.parts = parts
        self.clock = clock
        self.ids = RecordIds(clock)

    def remember(self, text: str, *, namespace: str = "default", **fields: Any) -> str:
        draft = draft_memory(NewMemory(text, **fields), self.clock(), self.ids())
        with self.parts.namespace(namespace).records.change() as work:
            return put_all(work, [draft], self.ids)[0].id

    def say(self, thread: str, *texts: str, namespace: str = "default") -> None:
        store = self.store(namespace)
        turns = [
            NewTurn("user", text, ts=self.clock(), speaker="Ann", source="chat",
                    source_key=thread, message_key=text)
            for text in texts
        ]  # fmt: skip
        store.extend(thread, turns)

    def store(self, namespace: str = "default") -> Conversations:
        return self.parts.namespace(namespace).conversations


@pytest.fixture
def keeping(clock: Callable[[], datetime]) -> Callable[[Container], HomeWriter]:
    return lambda parts: HomeWriter(parts, clock)


@pytest.fixture
def filled(parts: Container, keeping: Callable[[Container], HomeWriter]) -> Container:
    """A home with two namespaces, speakers, a superseded value and a restated memory."""
    keeper = keeping(parts)
    keeper.say("trip", "We leave on Monday.", "Bring the green tent.")
    keeper.say("Über den Fluß", "Zwei Worte \x00 \ud800 <>&")
    keeper.say("work", "Ship it on Friday.", namespace="team")
    keeper.remember("The editor is vim.", path="user.editor", tags=("tools",))
    keeper.remember("The editor is helix.", path="user.editor", payload={"since": 2026})
    keeper.remember("Ann is allergic to nuts.", source="chat")
    keeper.remember("Ann is allergic to nuts.", source="mail")
    keeper.remember("Release on Fridays.", namespace="team", conversation_id="work", turn_index=0)
    return parts


def memories(parts: Container, namespace: str = "default") -> dict[str, Any]:
    """Every memory with its events, by id; numbers of commits left out."""
    lane = parts.namespace(namespace)
    found: list[MemoryRecord] = list(lane.records.changed_since(0, 10_000))
    return {
        record.id: (
            replace(record, seq=0),
            [replace(event, seq=0) for event in lane.records.events(record.id)],
        )
        for record in found
    }


def threads(parts: Container, namespace: str = "default") -> dict[str, bytes]:
    """The bytes of every thread, by id."""
    store = parts.namespace(namespace).conversations
    return {found: store.read_file(found)[0] for found, _ in store.files()}


def notes(parts: Container, namespace: str = "default") -> dict[str, dict[int, TurnNote]]:
    """Every note about a turn."""
    sidecar = parts.namespace(namespace).sidecar
    return {one: sidecar.turn_notes(one) for one in sidecar.changed_since(0)}


def everything(parts: Container) -> dict[str, Any]:
    """All that a backup or an export must bring back, by namespace."""
    return {
        name: (memories(parts, name), threads(parts, name), notes(parts, name))
        for name in parts.namespaces()
    }
