"""Statements of the seeds are covered: by promises, or by a function that shows what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.behaviours import PROMISES
from tests.conformance import seed_000, seed_001, seed_003, seed_004
from tests.conformance.desk import Desk, Shared
from tests.conformance.table import ROOT, Row
from tests.docs.pages import anchors

pytestmark = pytest.mark.internal

ROWS = [row for seed in (seed_000, seed_001, seed_003, seed_004) for row in seed.SEED.rows]
PAGE = "docs/seeds.md"
STATEMENTS = Path(__file__).parent / "conformance" / "statements.md"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """What several rows read."""
    parts = Shared(tmp_path_factory.mktemp("shared"))
    yield parts
    parts.close()


@pytest.fixture
def desk(tmp_path: Path, shared: Shared) -> Iterator[Desk]:
    """An empty home for one row."""
    desk = Desk(tmp_path, shared)
    yield desk
    desk.close()


def _statements() -> list[list[str]]:
    """The rows of the table: seed, line, statement, promises."""
    lines = STATEMENTS.read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:3] == "| 0"]


@pytest.mark.promise("seeds.conformance")
@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_a_statement_of_a_seed_holds(row: Row, desk: Desk) -> None:
    """The product does what the statement says, or what a page says that it does instead."""
    assert row.look(desk)


@pytest.mark.promise("seeds.conformance")
def test_every_other_statement_is_covered_by_promises() -> None:
    """Each has one promise or more, and all of them are written down."""
    for seed, line, statement, promises in _statements():
        named = re.findall(r"`([^`]+)`", promises)
        assert named, (seed, line, statement)
        assert set(named) <= set(PROMISES), (seed, line, statement)


@pytest.mark.promise("seeds.conformance")
def test_each_section_about_a_difference_has_a_row() -> None:
    """Every difference is a heading of the page, and every such heading is shown by a row."""
    shown = {row.on_purpose for row in ROWS if row.on_purpose is not None}
    shown |= set(re.findall(rf"{re.escape(PAGE)}#[\w-]+", STATEMENTS.read_text("utf-8")))
    sections = anchors("\n".join(re.findall(r"^### .*$", (ROOT / PAGE).read_text(), re.MULTILINE)))
    assert shown == {f"{PAGE}#{section}" for section in sections}
