"""How long each target is fuzzed, from which seed, or with which input."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzzing")
    group.addoption("--fuzz-seconds", type=float, help="seconds for each target (2.5)")
    group.addoption("--fuzz-calls", type=int, help="so many inputs for each target, not seconds")
    group.addoption(
        "--fuzz-count", action="store_true", help="count what fails and go on; fail at the end"
    )
    group.addoption("--fuzz-seed", type=int, help="the seed of a run that is to be done again")
    group.addoption("--fuzz-input", help="check this one file alone")
