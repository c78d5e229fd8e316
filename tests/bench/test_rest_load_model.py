"""The simulation of a server keeps to what cores and the interpreter's lock allow."""

from __future__ import annotations

import pytest
from bench.rest_load_model import Costs, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

COSTS = Costs(around=0.001, recalls=(0.003, 0.004, 0.006), run=0.001, each=0.001)
WITHOUT_CHANCE = Costs(around=0.001, recalls=(0.004,), run=0.001, each=0.001, client=0.0005)


def test_one_connection_takes_what_its_parts_take() -> None:
    """Nobody is in its way, on however many cores."""
    for cores in (1, 8):
        found = simulate(WITHOUT_CHANCE, processes=1, cores=cores, connections=1, answers=200)
        assert found.p50 == pytest.approx(7.5)
        assert found.rate == pytest.approx(1 / 0.0075)


@settings(max_examples=25)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 40))
def test_no_more_than_cores_and_the_lock_allow(
    processes: int, cores: int, connections: int
) -> None:
    """Each core has a second a second, and so has the lock of each process."""
    found = simulate(
        COSTS, processes=processes, cores=cores, connections=connections, answers=1_000
    )
    least = COSTS.around + min(COSTS.recalls)
    assert found.rate <= 1.02 * min(processes / least, cores / (least + COSTS.each))
    assert found.rate <= 1.02 * connections / (least + COSTS.each + COSTS.run)
    assert found.p50 <= found.p99


def test_a_process_for_each_core_doubles_with_the_cores() -> None:
    """As long as there is enough to do for all of them."""
    rates = [
        simulate(COSTS, processes=cores, cores=cores, connections=16 * cores).rate
        for cores in (1, 2, 4)
    ]
    assert rates[1] == pytest.approx(2 * rates[0], rel=0.05)
    assert rates[2] == pytest.approx(4 * rates[0], rel=0.05)
