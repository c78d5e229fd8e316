"""A question is read once, however many lanes a search asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory, SearchKind
from anaphora.recall import question as preparing

KINDS: tuple[SearchKind, ...] = ("memory", "note", "turn", "file", "document", "tool_call")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A memory with something of several kinds in it."""
    with Memory.open(tmp_path / "home") as opened:
        opened.conversations.append("a", "user", "The ferry harbour closes at nine.")
        opened.remember("The user prefers pnpm over npm as a package manager.")
        opened.observe("We chose PostgreSQL for the harbour log.", kind="decision")
        assert opened.ready(60)
        yield opened


@pytest.mark.promise("search.everything")
def test_a_question_is_prepared_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lanes a search asks, its text is cut, split and compared with the clock once."""
    asked = "which package manager did the user prefer in the ferry harbour last week?"
    calls: list[str] = []
    steps = ("typed_question", "truncated_question", "query_words", "read_times", "_drop_times")
    for name in steps:
        function = getattr(preparing, name)

        def call(*given: Any, _name: str = name, _function: Any = function) -> Any:
            calls.append(_name)
            return _function(*given)

        monkeypatch.setattr(preparing, name, call)
    assert memory.search(asked, kinds=KINDS, min_confidence=0)
    assert sorted(calls) == sorted(steps)
