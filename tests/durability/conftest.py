"""A process that forks for each run, shared by the tests of one worker, and a campaign with it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.durability import work
from tests.durability.campaign import Campaign
from tests.durability.faults import Zygote


@pytest.fixture(scope="session")
def campaign() -> Iterator[Campaign]:
    """Works under faults. Where a process cannot be watched the tests fail, and say why."""
    if sys.platform != "linux":
        pytest.skip("calls can be watched on Linux alone")
    with Zygote(Path(work.__file__)) as zygote, tempfile.TemporaryDirectory() as folder:
        yield Campaign(Path(folder), zygote)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on the disk: what is promised of one is not shown by a file system in memory."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
