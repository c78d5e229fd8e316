"""Several devices, whatever they do and in whatever order they meet: one memory."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.deep.asking import Script
from tests.sync.devices import SHARED, History, devices, settle, state_of, words_of

from anaphora import Memory
from anaphora.errors import RemoteError


@pytest.mark.promise("sync.converges")
@pytest.mark.parametrize("seed", [*range(7), 1010, 1031, 1057])
def test_devices_agree(tmp_path: Path, seed: int) -> None:
    """One state everywhere; nothing lost that nobody forgot, nothing alive that somebody did."""
    chance = random.Random(seed)
    offsets = [chance.choice([0.0, 0.1, 5.0, -30.0, 600.0]) for _ in range(5)]
    with devices(tmp_path, chance.randint(2, 4), lambda n: offsets[n]) as made:
        history = History(made, chance, tmp_path)
        history.run(40)
        settle(made)
        states = [state_of(memory, tmp_path) for memory in made]
        assert all(state == states[0] for state in states)
        left = words_of(made[0], tmp_path)
    assert history.said - history.forgotten <= left
    assert not (history.forgotten - {*SHARED, "[redacted]"}) & left


@pytest.mark.promise("sync.forgets")
@pytest.mark.parametrize("where", [0, 1])
def test_a_fact_goes_with_its_turn_on_every_device(tmp_path: Path, where: int) -> None:
    """Also where it was not taken out, and where other turns came between; others stay."""
    reply = json.dumps(
        [
            {"fact": "Ada drinks lapsang in the evening.", "turns": [0]},
            {"fact": "Bob is allergic to walnuts.", "turns": [1]},
        ]
    )
    with devices(tmp_path, 2, lambda n: 0.1 * n, model=Script(reply).model) as made:
        one, other = made
        one.conversations.append("tea", "user", "I am Ada and drink lapsang in the evening.")
        settle(made)
        other.conversations.append("tea", "user", "Whoever comes late gets no cake.")
        one.conversations.append("tea", "user", "Bob cannot eat walnuts, he is allergic.")
        assert len(one.extract("tea").added) == 2
        settle(made)
        thread = made[where].conversations.get("tea")
        assert thread is not None
        assert [turn.text[:7] for turn in thread.turns] == ["I am Ad", "Whoever", "Bob can"]
        made[where].conversations.redact("tea", 1)
        settle(made)
        for memory in made:
            assert len(memory.list()) == 2
        made[where].conversations.redact("tea", 2)
        settle(made)
        for memory in made:
            assert [record.text for record in memory.list()] == [
                "Ada drinks lapsang in the evening."
            ]
        assert state_of(one, tmp_path) == state_of(other, tmp_path)


@pytest.mark.promise("sync.converges")
def test_a_value_that_two_said_and_one_again(tmp_path: Path) -> None:
    """Another value came between: all three are one line, each ended by the next."""
    start = datetime(2026, 3, 1, tzinfo=UTC)
    with devices(tmp_path, 3, float) as made:
        one, two, three = made
        said = [
            (one, "I like tea"),
            (two, "I like tea"),
            (three, "I like rum"),
            (one, "I like tea"),
        ]
        for minute, (memory, text) in enumerate(said):
            at = start + timedelta(minutes=minute)
            memory.remember(text, path="user.drink", created_at=at)
        settle(made)
        assert len({tuple(state_of(memory, tmp_path)) for memory in made}) == 1
        first, between, last = two.history("user.drink")
        texts = [value.text for value in (first, between, last)]
        assert texts == ["I like tea", "I like rum", "I like tea"]
        assert [first.superseded_by, between.superseded_by, last.superseded_by] == [
            between.id, last.id, None,
        ]  # fmt: skip
        assert first.reinforce_count == 1


@pytest.mark.promise("sync.waiting")
def test_what_waits_is_counted_in_entries(tmp_path: Path) -> None:
    """Not in the changes they hold, and changes that no exchange has read are not counted yet."""
    remote = tmp_path / "remote"
    remote.mkdir()
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        memory.remember_many([f"Shelf {number} holds {number} jars." for number in range(600)])
        memory.sync.init(str(remote))
        status = memory.sync.status()
        assert status.waiting == 0
        assert status.uncounted
        assert status.backlog == "0 entries and what changed since to be sent"
        away = remote.rename(tmp_path / "away")
        with pytest.raises(RemoteError):
            memory.sync.now()
        status = memory.sync.status()
        assert status.waiting > 1
        assert not status.uncounted
        away.rename(remote)
        # One more introduces the device.
        assert memory.sync.now().sent == status.waiting + 1
        status = memory.sync.status()
        assert status.waiting == 0
        assert not status.uncounted
        assert status.backlog == "0 entries to be sent"
