"""Every statement of the seeds is tried: what differs does so on purpose, and a page says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.desk import Desk
from tests.conformance.rows import SEEDS
from tests.conformance.table import Row, run

ROWS = [row for seed in SEEDS for row in seed.rows]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """An empty home for one row."""
    desk = Desk(tmp_path)
    yield desk
    desk.close()


@pytest.mark.promise("seeds.conformance")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_statement_of_a_seed_holds(row: Row, desk: Desk) -> None:
    """The product does what the statement says, or what a page says that it does instead."""
    outcome = run(row, desk)
    assert outcome.verdict != "differs", outcome.seen


def test_nothing_of_the_seeds_is_missing() -> None:
    """There is no statement that the product has no answer to."""
    assert [row.id for row in ROWS if row.missing is not None] == []
