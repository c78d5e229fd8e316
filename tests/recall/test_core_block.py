"""The core block: what every session is told; pinned, ordered, within a budget, everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.as_json import as_json
from tests.conftest import Clock
from tests.sync.devices import devices, settle

from anaphora import Memory, keys
from anaphora.errors import InvalidInput, NotFound
from anaphora.testing import run_cli

RULE = "Never push to main without a review."
WISH = "The user prefers short answers."


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", clock=clock, embedder="hashing", warm=False) as opened:
        yield opened


def texts(memory: Memory) -> list[str]:
    return [one.text for one in memory.core_block().entries]


@pytest.mark.promise("core.block")
def test_pins_come_first_then_rules_then_preferences(memory: Memory, clock: Clock) -> None:
    """In the order that was given; what is no rule comes only where it is pinned; with sources."""
    memory.remember(WISH, source="chat-7")
    memory.remember(RULE)
    memory.remember("Tabs, in every file.", type="procedural")
    tea = memory.remember("Mara drinks tea at four.", conversation_id="tea", turn_index=3).id
    port = memory.remember("Staging is on port 5433.", path="staging.port").id
    memory.remember("Rafi owns the deploy script.")
    rules = ["Tabs, in every file.", RULE]
    assert sorted(texts(memory)[:2]) == sorted(rules)
    assert texts(memory)[2:] == [WISH]
    assert memory.pin(tea) == tea
    memory.pin(port, 1)
    block = memory.core_block()
    assert [one.position for one in block.entries] == [1, 2, None, None, None]
    assert [one.id for one in block.entries[:2]] == [port, tea]
    assert (block.entries[1].conversation_id, block.entries[1].turn_index) == ("tea", 3)
    assert block.entries[-1].sources == ("chat-7",)
    assert [one.kind for one in block.entries] == [
        "fact", "fact", "constraint", "constraint", "preference",
    ]  # fmt: skip
    # Pinned again without a place, it stays; an expired one is not there.
    memory.pin(port)
    memory.update(tea, expires_at=clock() + timedelta(hours=1))
    clock.advance(hours=2)
    assert [one.id for one in memory.core_block().entries][:1] == [port]
    assert tea not in [one.id for one in memory.core_block().entries]


@pytest.mark.promise("core.follows")
def test_a_pin_follows_the_value_that_holds(memory: Memory, clock: Clock) -> None:
    """A new value takes over the pin, and tells what was before; what is forgotten is gone."""
    first = memory.remember("I prefer short answers.", path="user.style").id
    other = memory.remember("Rafi owns the deploy script.").id
    memory.pin(first)
    memory.pin(other)
    clock.advance(days=1)
    second = memory.remember("I prefer answers as tables.", path="user.style").id
    (entry, _) = memory.core_block().entries
    assert (entry.id, entry.position) == (second, 1)
    assert entry.previous is not None
    assert entry.previous.text == "I prefer short answers."
    # By its old id the present value is moved; an edit is a version, too.
    assert memory.pin(first, 2) == second
    clock.advance(days=1)
    third = memory.update(second, text="I prefer answers in rhymes.").id
    clock.advance(days=1)
    fourth = memory.remember("No answers at all.", supersedes=third).id
    assert [one.id for one in memory.core_block().entries] == [other, fourth]
    assert memory.forget(other).count == 1
    memory.forget(fourth, undoable=True)
    assert texts(memory) == []
    memory.undo_forget(fourth)
    assert texts(memory) == ["No answers at all."]
    with pytest.raises(NotFound):
        memory.pin(other)
    with pytest.raises(InvalidInput, match="position"):
        memory.pin(fourth, 0)


@pytest.mark.promise("core.follows")
def test_a_pin_follows_a_verdict_and_back(tmp_path: Path, clock: Clock) -> None:
    """What a verdict replaced hands its pin on; taken back, both are what they were."""
    old, new = (
        "The team deploys on Wednesday mornings.",
        "Since July the team deploys on Thursdays.",
    )
    with Memory.open(tmp_path / "home", clock=clock) as memory:
        assert memory.ready(60)
        first = memory.remember(old).id
        memory.pin(first)
        clock.advance(days=30)
        second = memory.remember(new).id
        memory.settle_contradiction(second, first, "replaces")
        assert texts(memory) == [new]
        # The old one alone is forgotten for good: its pin is not lost with it.
        memory.reopen_contradiction(second, first)
        assert texts(memory) == [old]
        memory.settle_contradiction(second, first, "replaces")
        memory.forget(first)
        assert texts(memory) == [new]


@pytest.mark.promise("core.kept_out")
def test_what_is_taken_out_stays_out(memory: Memory, clock: Clock) -> None:
    """A rule that came by itself, and its next value; pinned, it is back."""
    rule = memory.remember(RULE, path="rules.push").id
    memory.remember(WISH)
    memory.unpin(rule)
    assert texts(memory) == [WISH]
    clock.advance(days=1)
    memory.remember("Never push on Fridays.", path="rules.push")
    assert texts(memory) == [WISH]
    memory.pin(rule)
    assert texts(memory) == ["Never push on Fridays.", WISH]
    # It is in the rest of the warm-up all the same: it holds, and nobody has forgotten it.
    memory.unpin(rule)
    warm = memory.warm_up()
    assert [one.text for one in warm.core] == [WISH]
    shown = run_cli("project", "warm-up", "--block", home=memory.home).stdout
    assert "Never push on Fridays." in shown


@pytest.mark.promise("core.block")
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=12))
def test_any_moves_end_in_the_order_that_was_asked_for(
    memory: Memory, moves: list[tuple[int, int]]
) -> None:
    """Pinned, moved and unpinned as a list would be; 0 unpins."""
    view = memory.scoped(f"n{len(memory.namespaces())}")
    ids = [one.id for one in view.remember_many(f"Thing {n}" for n in range(5))]
    order: list[str] = []
    for which, position in moves:
        if ids[which] in order:
            order.remove(ids[which])
        if position:
            order.insert(position - 1, ids[which])
            view.pin(ids[which], position)
        else:
            view.unpin(ids[which])
        assert [one.id for one in view.core_block(budget=2_000).entries] == order


@pytest.mark.promise("core.block")
def test_a_pin_and_a_rule_are_found_among_many(memory: Memory) -> None:
    """However much was said since; and so often moved to the top that numbers between run out."""
    rule = memory.remember("Answer in German.", type="procedural").id
    first, second = (memory.remember(f"Fact {n}").id for n in "ab")
    memory.pin(first)
    memory.pin(second)
    memory.remember_many(f"Remark {n}" for n in range(600))
    assert [one.id for one in memory.core_block().entries] == [first, second, rule]
    third = memory.remember("Fact c").id
    for n in range(70):
        memory.pin((third, second)[n % 2], 2)
    assert [one.id for one in memory.core_block().entries] == [first, second, third, rule]


@pytest.mark.promise("core.travels")
def test_pins_go_where_their_memories_go(tmp_path: Path, clock: Clock, postgresql_url: str) -> None:
    """Export and import (into PostgreSQL), backup and restore, and encryption keep them."""
    with Memory.open(tmp_path / "home", clock=clock, embedder="hashing", warm=False) as memory:
        style = memory.remember("I prefer short answers.", path="user.style").id
        rule = memory.remember(RULE).id
        tea = memory.remember("Mara drinks tea at four.").id
        memory.pin(tea)
        memory.pin(style, 1)
        memory.unpin(rule)
        expected = as_json(memory.core_block())
        memory.export(tmp_path / "all.jsonl")
        memory.backup(tmp_path / "all.backup")
        other = memory.scoped("work")
        assert other.core_block().entries == ()
    Memory.restore(tmp_path / "all.backup", tmp_path / "restored")
    keys.encrypt(tmp_path / "restored", kept="file")
    with (
        Memory.open(
            tmp_path / "imported", clock=clock, embedder="hashing", warm=False,
            database=postgresql_url,
        ) as imported,
        Memory.open(tmp_path / "restored", clock=clock, embedder="hashing", warm=False) as restored,
    ):  # fmt: skip
        imported.import_(tmp_path / "all.jsonl")
        for memory in (imported, restored):
            assert as_json(memory.core_block()) == expected
            assert memory.unpin(style) == style
            assert memory.pin(tea, 1) == tea
            assert texts(memory) == ["Mara drinks tea at four."]
        # Again, an export changes nothing that was said later.
        imported.import_(tmp_path / "all.jsonl")
        assert texts(imported) == ["Mara drinks tea at four."]


@pytest.mark.promise("core.travels")
def test_devices_agree_on_the_block(tmp_path: Path) -> None:
    """One pins what the other gives a new value at the same time: the new value is pinned."""
    with devices(tmp_path, 2, lambda n: 0.1 * n) as (one, other):
        style = one.remember("I prefer short answers.", path="user.style").id
        fact = one.remember("Rafi owns the deploy script.").id
        settle([one, other])
        one.pin(style)
        other.remember("I prefer answers as tables.", path="user.style")
        settle([one, other])
        assert texts(one) == texts(other) == ["I prefer answers as tables."]
        other.pin(fact, 1)
        one.unpin(style)
        settle([one, other])
        assert texts(one) == texts(other) == ["Rafi owns the deploy script."]
