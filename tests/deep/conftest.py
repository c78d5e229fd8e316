"""A home with real conversations for deep recall, and a server that answers as a provider does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from anaphora import Memory

from .openai_server import OpenAIServer
from .scripts import EXAMPLE, Timer

ASKED = datetime(2026, 4, 10, 9, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def ferrywell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A project's conversations of two months (examples/conversation.json). Only to be read."""
    home = tmp_path_factory.mktemp("ferrywell")
    with Memory.open(home, embedder="hashing", clock=lambda: ASKED) as memory:
        memory.import_(EXAMPLE)
        memory.ready()
        memory.remember("Maren wants answers in German", created_at=ASKED)
        yield memory


@pytest.fixture
def timer() -> Timer:
    return Timer()


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """A server on the loopback that speaks OpenAI's language and replays turns."""
    with OpenAIServer() as running:
        yield running
