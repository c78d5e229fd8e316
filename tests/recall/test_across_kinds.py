"""A later statement of another kind: a memory outdates a turn, and a turn a memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory, NewTurn

OLD = "The staging database listens on port 5433."
NEW = "We moved the staging database, it listens on port 5439 now."
ASKED = "which port does the staging database listen on?"
BEGUN = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    now = BEGUN + timedelta(days=30)
    with Memory.open(tmp_path / "home", clock=lambda: now) as opened:
        yield opened


def tell(memory: Memory, text: str, days: int, *, as_turn: bool) -> None:
    at = BEGUN + timedelta(days=days)
    if as_turn:
        memory.conversations.extend("chat", [NewTurn("user", text, ts=at)])
    else:
        memory.remember(text, created_at=at)


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("old_is_turn", [True, False], ids=["turn", "memory"])
def test_what_another_kind_replaced_says_so_and_stands_behind_it(
    memory: Memory, old_is_turn: bool
) -> None:
    tell(memory, OLD, 0, as_turn=old_is_turn)
    tell(memory, NEW, 20, as_turn=not old_is_turn)
    memory.remember("Lunch is at noon on Fridays.")
    assert memory.ready(60)
    hits = {hit.text: hit for hit in memory.search(ASKED)}
    texts = list(hits)
    assert texts.index(NEW) < texts.index(OLD)
    assert (hits[NEW].current, hits[OLD].current) == (True, False)
    assert hits[OLD].older_than == hits[NEW].id
    assert any(NEW in line for line in hits[OLD].versions)


@pytest.mark.promise("recall.current")
def test_what_is_dated_ahead_outdates_nothing_of_another_kind(memory: Memory) -> None:
    tell(memory, OLD, 0, as_turn=True)
    tell(memory, NEW, 60, as_turn=False)
    assert memory.ready(60)
    hits = {hit.text: hit for hit in memory.search(ASKED)}
    assert hits[OLD].current
