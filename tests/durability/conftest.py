"""A process that forks for each run, shared by the tests of one worker, and a campaign with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.durability import work
from tests.durability.campaign import Campaign
from tests.durability.faults import Zygote


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    """Works under faults. Where a process cannot be watched the tests fail, and say why."""
    if sys.platform != "linux":
        pytest.skip("calls can be watched on Linux alone")
    with Zygote(Path(work.__file__)) as zygote:
        yield Campaign(tmp_path_factory.mktemp("campaign"), zygote)
