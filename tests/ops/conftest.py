"""Homes to look after: with threads, notes and memories, clear or sealed, on either database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.exported import exported

from anaphora import Memory, NewTurn

OpenHome = Callable[..., Memory]


@pytest.fixture
def open_home(tmp_path: Path, clock: Callable[[], datetime]) -> Iterator[OpenHome]:
    """Opens homes by name under the test's folder, as another program would each time."""
    with ExitStack() as opened:

        def open_one(name: str = "home", **options: Any) -> Memory:
            given: dict[str, Any] = {"embedder": "hashing", "clock": clock, **options}
            memory = opened.enter_context(Memory.open(tmp_path / name, **given))
            memory.ready(60)
            return memory

        yield open_one


def say(memory: Memory, thread: str, *texts: str) -> None:
    """Turns that Ann said, with where they came from."""
    turns = [
        NewTurn("user", text, speaker="Ann", source="chat", source_key=thread, message_key=text)
        for text in texts
    ]
    memory.conversations.extend(thread, turns)


@pytest.fixture
def filled(open_home: OpenHome) -> Memory:
    """A home with two namespaces, speakers, a superseded value and a restated memory."""
    memory = open_home()
    say(memory, "trip", "We leave on Monday.", "Bring the green tent.")
    say(memory, "Über den Fluß", "Zwei Worte \x00 \ud800 <>&")
    team = memory.scoped("team")
    say(team, "work", "Ship it on Friday.")
    memory.remember("The editor is vim.", path="user.editor", tags=("tools",))
    memory.remember("The editor is helix.", path="user.editor", payload={"since": 2026})
    memory.remember("Ann is allergic to nuts.", source="chat")
    memory.remember("Ann is allergic to nuts.", source="mail")
    team.remember("Release on Fridays.", conversation_id="work", turn_index=0)
    return memory


def memories(memory: Memory) -> dict[str, Any]:
    """Every memory of a namespace with its events, by id, as an export says it."""
    return {line["id"]: line for line in exported(memory, "memory")}


def threads(memory: Memory) -> dict[str, bytes]:
    """The bytes of every thread of a namespace, by id."""
    store = memory.conversations
    return {found: store.read_file(found)[0] for found, _ in store.files()}


def notes(memory: Memory) -> list[dict[str, Any]]:
    """Every note about a conversation or turn."""
    kinds = ("conversation_note", "turn_note", "forgotten_turn")
    return [line for kind in kinds for line in exported(memory, kind)]


def everything(memory: Memory) -> dict[str, Any]:
    """All that a backup must bring back, by namespace."""
    found = {name: memory.scoped(name) for name in memory.namespaces()}
    return {name: (memories(one), threads(one), notes(one)) for name, one in found.items()}
