"""Several devices, whatever they do and in whatever order they meet: one memory."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.deep.asking import Script
from tests.sync.devices import SHARED, History, devices, settle, state_of, words_of


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
