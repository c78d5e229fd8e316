"""Reading leaves a home as it was: one that nothing was written to is not even made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory
from anaphora.errors import NotFound

READS: dict[str, Callable[[Memory], Any]] = {
    "stats": lambda memory: memory.stats(),
    "recall": lambda memory: memory.recall("the kettle"),
    "recall_conversation": lambda memory: memory.recall_conversation(None, "the kettle"),
    "recall of one": lambda memory: memory.recall_conversation("chat", "the kettle"),
    "recall_context": lambda memory: memory.recall_context("the kettle"),
    "warm_up": lambda memory: memory.warm_up(),
    "list": lambda memory: memory.list(),
    "history": lambda memory: memory.history("kettle.colour"),
    "conversations": lambda memory: memory.conversations.list(),
    "one": lambda memory: memory.conversations.get("chat"),
    "recent": lambda memory: memory.conversations.recent("chat"),
    "problems": lambda memory: memory.conversations.problems(),
    "projects": lambda memory: memory.projects(),
    "gaps": lambda memory: memory.gaps(),
    "traces": lambda memory: memory.traces(),
    "namespaces": lambda memory: memory.namespaces(),
    "tokens": lambda memory: memory.tokens.list(),
    "doctor": lambda memory: memory.doctor(),
    "ready": lambda memory: memory.ready(),
    "elsewhere": lambda memory: memory.scoped("other").recall_conversation(None, "the kettle"),
}


@pytest.mark.promise("calls.reading_writes_nothing")
@pytest.mark.parametrize("name", READS)
def test_reading_makes_no_home(name: str, tmp_path: Path) -> None:
    """A home that is only read, from any side and again, is not there afterwards."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for _ in range(2):
            READS[name](memory)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("calls.reading_writes_nothing")
def test_what_is_not_there_makes_no_home(tmp_path: Path) -> None:
    """Asking for what is not there says so, and writes nothing either."""
    asked: list[Callable[[Memory], Any]] = [
        lambda memory: memory.get("x"),
        lambda memory: memory.trace("x"),
        lambda memory: memory.project_map("x"),
    ]
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for call in asked:
            with pytest.raises(NotFound):
                call(memory)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("calls.reading_writes_nothing")
def test_the_first_turn_makes_the_index(tmp_path: Path) -> None:
    """Who asked before anything was there finds the first turn, and nothing is degraded."""
    index = tmp_path / "home" / "index"
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        before = memory.recall_conversation(None, "the kettle")
        assert (before.hits, before.degraded) == ((), ())
        memory.remember("The cup is green")
        assert memory.recall_conversation(None, "the kettle").degraded == ()
        assert not (index / "default" / "turns.sqlite").exists()
        with Memory.open(tmp_path / "home", embedder="hashing") as other:
            other.recall_conversation(None, "the kettle")
            memory.conversations.append_user("chat", "The kettle is blue")
            for one in (memory, other):
                found = one.recall_conversation(None, "the kettle")
                assert ([hit.text for hit in found], found.degraded) == (
                    ["The kettle is blue"],
                    (),
                )
        assert (index / "default" / "turns.sqlite").exists()
        assert all(check.ok for check in memory.doctor() if check.name == "index")
