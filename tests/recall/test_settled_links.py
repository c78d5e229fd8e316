"""What people say of two memories stands above the judge."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from anaphora import Memory, NewTurn

OLD, NEW = "The standup is in room 5.", "The standup is in room 7 now."
ASKED = "where is the standup?"


@pytest.mark.promise("recall.current")
def test_of_two_that_both_hold_none_is_marked(tmp_path: Path) -> None:
    """Settled so, they stay so, also when all links are made anew; reopened, they are marked."""
    with Memory.open(tmp_path / "home") as memory:
        old, new = memory.remember(OLD), memory.remember(NEW)
        assert memory.ready(60)
        assert [hit.text for hit in memory.recall(ASKED) if not hit.current] == [OLD]
        memory.settle_contradiction(new.id, old.id, "both_hold")
        assert all(hit.current for hit in memory.recall(ASKED))
        memory.reindex("minilm")
        assert memory.ready(60)
        assert all(hit.current for hit in memory.recall(ASKED))
        memory.reopen_contradiction(new.id, old.id)
        assert [hit.text for hit in memory.recall(ASKED) if not hit.current] == [OLD]


@pytest.mark.promise("recall.current")
def test_what_is_said_again_in_other_words_is_one(tmp_path: Path) -> None:
    """Of two turns by one speaker one comes, and names the other."""
    said = ["Rafi owns staging.", "The heron is grey.", "Staging is owned by Rafi."]
    with Memory.open(tmp_path / "home") as memory:
        for day, text in enumerate(said, 1):
            ts = datetime(2026, 3, day, tzinfo=UTC)
            memory.conversations.extend("chat", [NewTurn("user", text, ts=ts)])
        assert memory.ready(60)
        found = memory.recall_conversation(None, "who owns staging?")
        first = found[0]
        assert {first.text, *(copy.text for copy in first.occurrences)} == {said[0], said[2]}
        assert [hit.text for hit in found if hit is not first] in ([], [said[1]])
