"""Several devices, whatever they do and in whatever order they meet: one memory."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.sync.devices import SHARED, History, devices, settle, state_of, words_of


@pytest.mark.promise("sync.converges")
@pytest.mark.parametrize("seed", [*range(24), 1010, 1031, 1057])
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
