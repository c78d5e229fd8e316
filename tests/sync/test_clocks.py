"""Clocks that are apart: what a device says after it has read another value is the later one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.sync.devices import devices, settle, state_of

from anaphora import Memory

YEAR = 365 * 86_400.0
SKEWS = [3.0, 240.0, 600.0, 10 * YEAR]


def value(memory: Memory) -> str:
    """What the path says."""
    (record,) = memory.list(filters={"path": "gate.code"}).items
    return record.text


@pytest.mark.promise("sync.clocks")
@pytest.mark.parametrize("skew", [sign * skew for skew in SKEWS for sign in (1, -1)])
def test_a_value_is_corrected_on_any_device(tmp_path: Path, skew: float) -> None:
    """From seconds to years, ahead or behind: the last that was said after it was read stands."""
    chance = random.Random(skew)
    with devices(tmp_path, 2, lambda n: skew * n) as (one, other):
        said = []
        for turn in range(4):
            memory = (one, other)[turn % 2] if turn < 2 else chance.choice([one, other])
            said.append(f"The gate code is {turn}{turn}{turn}{turn}.")
            memory.remember(said[-1], path="gate.code")
            settle([one, other])
            assert value(one) == value(other) == said[-1]
        assert [record.text for record in one.history("gate.code")] == said
        assert state_of(one, tmp_path) == state_of(other, tmp_path)
