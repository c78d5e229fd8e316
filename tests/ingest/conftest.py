"""A home to import into, and the fixtures written for the importers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.exported import exported

from anaphora import ImportedConversation, ImportReport, Memory

from .memory_desk import Desk

FIXTURES = Path(__file__).parent / "fixtures"


class Home:
    """A place to import into; twice the same directory is a second program's view of it."""

    def __init__(self, place: Path) -> None:
        self.memory = Memory.open(place, embedder="hashing", warm=False)
        self.store = self.memory.conversations

    def take(self, *sources: Path | ImportedConversation, **given: Any) -> ImportReport:
        return self.memory.import_(sources, embed=False, **given)

    def said(self, conversation_id: str) -> list[tuple[str, str]]:
        thread = self.store.get(conversation_id)
        return [(turn.role, turn.text) for turn in thread.turns] if thread else []

    def everything(self) -> dict[str, list[tuple[str, str]]]:
        names = sorted(summary.conversation_id for summary in self.store.list())
        return {name: self.said(name) for name in names}

    def origins(self) -> dict[str, dict[str, Any]]:
        """Where each conversation came from, as an export says it."""
        return {note["thread"]: note for note in exported(self.memory, "conversation_note")}

    def __enter__(self) -> Home:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path / "home") as home:
        yield home


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def desk(database: Path | str, tmp_path: Path, clock: Callable[[], datetime]) -> Iterator[Desk]:
    """Remembering in an empty home, once for each kind of database."""
    url = database if isinstance(database, str) else None
    with Memory.open(tmp_path / "home", database=url, embedder="hashing", clock=clock) as memory:
        memory.ready(60)
        yield Desk(memory)
