"""What every test may use: the shared data beside the checkout, and a clock that stands still."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; tests that need it skip without it."""
    place = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not place.is_dir():
        pytest.skip("the shared data folder is not beside this checkout")
    return place


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see none of the developer's own settings."""
    for name in [n for n in os.environ if n.startswith(("ANAPHORA_", "NEO_"))]:
        monkeypatch.delenv(name)


MakeClock = Callable[[], datetime]
