"""The order in which statements are told is no matter: their times say what is later."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from anaphora import Memory

TOLD = (
    ("The rent is 900 euros.", datetime(2026, 1, 5, tzinfo=UTC)),
    ("The rent is 950 euros.", datetime(2026, 3, 5, tzinfo=UTC)),
    ("The rent is 1020 euros.", datetime(2026, 6, 5, tzinfo=UTC)),
)


@pytest.mark.promise("recall.current")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_statement_that_comes_late_replaces_nothing_later(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """An older value that is imported last stands behind, and names what holds."""
    with Memory.open(tmp_path / "home") as memory:
        for place in order:
            text, at = TOLD[place]
            memory.remember(text, created_at=at)
            assert memory.ready(60)
        first, *rest = memory.recall("how much is the rent?", min_confidence=0.0)
    assert (first.text, first.current) == (TOLD[-1][0], True)
    assert {hit.text for hit in rest} == {TOLD[0][0], TOLD[1][0]}
    marked = {hit.text: hit.older_than.text for hit in rest if hit.older_than is not None}
    assert marked[TOLD[1][0]] == TOLD[-1][0]
