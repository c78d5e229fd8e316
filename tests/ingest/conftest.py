"""A store with its sidecar in a temporary home, and the fixtures written for the importers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from anaphora.ingest.conversations import import_conversations
from anaphora.store.db.engine import Database, open_database
from anaphora.store.threads.file_store import ConversationStore
from anaphora.store.threads.sidecar import Sidecar
from anaphora.values.conversations import ImportedConversation, ImportReport

from .memory_desk import Desk

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass
class Home:
    """A place to import into."""

    store: ConversationStore
    sidecar: Sidecar

    def take(self, *sources: Path | ImportedConversation, again: bool = False) -> ImportReport:
        return import_conversations(sources, self.store, self.sidecar, again=again)

    def said(self, conversation_id: str) -> list[tuple[str, str]]:
        thread = self.store.get(conversation_id)
        return [(turn.role, turn.text) for turn in thread.turns] if thread else []

    def everything(self) -> dict[str, list[tuple[str, str]]]:
        return {name: self.said(name) for name, _ in sorted(self.store.files())}


OpenHome = Callable[[Path], Home]


@pytest.fixture(scope="session")
def open_home() -> OpenHome:
    """Open a home in a directory; twice the same directory is a second process's view of it."""

    def opened(place: Path) -> Home:
        sidecar = Sidecar(open_database(place / "truth.db"), "default")
        return Home(
            ConversationStore(place / "conversations", strict=True, sidecar=sidecar), sidecar
        )

    return opened


@pytest.fixture
def home(tmp_path: Path, open_home: OpenHome) -> Home:
    return open_home(tmp_path / "home")


@pytest.fixture
def fixtures() -> Path:
    return FIXTURES


@pytest.fixture
def desk(truth: Database, clock: Callable[[], datetime]) -> Desk:
    """Remembering over an empty truth, once for each kind of database, its embedder loaded."""
    return Desk(truth, clock).warm()
