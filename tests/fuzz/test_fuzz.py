"""Hostile inputs end with an error of ours or an honest answer, and leave nothing half-done.

Each target is fuzzed for a second from another seed every time; what ever failed lies in
`found/` and is checked first, always. `make fuzz SECONDS=600` runs longer, `make fuzz TARGET=times
CALLS=5000 SEED=1` a fixed number of inputs.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from .targets import TARGETS, Extent, fuzz, known, replay

pytestmark = pytest.mark.internal

SECONDS = 1.0


@pytest.fixture
def shared() -> Path | None:
    """The real data beside the checkout, or None: our own files are there without it."""
    place = Path(__file__).resolve().parents[3] / "shared" / "data"
    return place if place.is_dir() else None


@pytest.mark.promise("fuzz.found")
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name in TARGETS if any(known(TARGETS[name]))])
def test_what_failed_once_fails_no_more(name: str, tmp_path: Path, shared: Path | None) -> None:
    """Every input that ever failed is refused or read as it must be."""
    replay(TARGETS[name], tmp_path, shared, list(known(TARGETS[name])))


@pytest.mark.promise("fuzz.importers")
@pytest.mark.promise("fuzz.archives")
@pytest.mark.promise("fuzz.threads")
@pytest.mark.promise("fuzz.homes")
@pytest.mark.promise("fuzz.values")
@pytest.mark.promise("fuzz.surfaces")
@pytest.mark.promise("fuzz.times")
@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_inputs_end_as_they_must(
    name: str, tmp_path: Path, shared: Path | None, request: pytest.FixtureRequest
) -> None:
    """Inputs that were made worse at random are refused in our words, or read back as they are."""
    options = request.config.option
    target, given = TARGETS[name], getattr(options, "fuzz_input", None)
    if given is not None:
        replay(target, tmp_path, shared, [Path(given)])
        return
    seed = getattr(options, "fuzz_seed", None) or secrets.randbits(48)
    extent = Extent(
        getattr(options, "fuzz_seconds", None) or SECONDS,
        getattr(options, "fuzz_calls", None),
        getattr(options, "fuzz_count", False),
    )
    tally = fuzz(target, tmp_path, shared, seed, extent)
    print(f"{name}: {tally.inputs} inputs in {tally.seconds:.1f} s from seed {seed}")
    assert tally.inputs > 0
    assert not tally.failures, f"{tally.failures.total()} fail: {dict(tally.failures)}"
