"""Dreams of the server: on an interval where they were asked for, and never without."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.surfaces.rest_desk import served

pytestmark = pytest.mark.enable_socket


def dreams(client: TestClient) -> float:
    lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith('anaphora_dreams_total{result="done"}')]
    return float(found[0].split()[-1]) if found else 0.0


@pytest.mark.promise("rest.dreams")
def test_what_a_session_has_left_is_done_in_the_background(tmp_path: Path) -> None:
    """With an interval the jobs of an ended session are run without anybody asking."""
    options = {"page": None, "dream_every": 0.01}
    with served(tmp_path / "home", options) as (client, memory):
        memory.conversations.append_user("c", "a heron came by")
        memory.end_session("c")
        for _ in range(5_000):
            if dreams(client) >= 2:
                break
        assert dreams(client) >= 2
        assert memory.stats().jobs == 0


@pytest.mark.promise("rest.dreams")
def test_nobody_dreams_unasked(tmp_path: Path) -> None:
    """Without an interval nothing is dreamt, and what waits goes on waiting."""
    with served(tmp_path / "home") as (client, memory):
        memory.conversations.append_user("c", "a heron came by")
        waiting = memory.end_session("c")
        for _ in range(50):
            assert dreams(client) == 0
        assert memory.stats().jobs == waiting
