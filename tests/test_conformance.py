"""Every statement of the seeds is tried: what differs does so on purpose, and a page says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.desk import Desk
from tests.conformance.rows import SEEDS
from tests.conformance.shared import Shared
from tests.conformance.table import ROOT, Outcome, Row, Seed, print_table, run
from tests.docs.pages import anchors

pytestmark = pytest.mark.internal

ROWS = [row for seed in SEEDS for row in seed.rows]
PAGE = "docs/seeds.md"


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


def _marks(row: Row) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.enable_socket] if row.sockets else []
    if row.expected_failure is not None:
        marks.append(
            pytest.mark.xfail(strict=True, raises=AssertionError, reason=row.expected_failure)
        )
    return marks


@pytest.mark.promise("seeds.conformance")
@pytest.mark.parametrize("row", [pytest.param(row, id=row.id, marks=_marks(row)) for row in ROWS])
def test_a_statement_of_a_seed_holds(row: Row, desk: Desk) -> None:
    """The product does what the statement says, or what a page says that it does instead."""
    if row.expected_failure is not None:
        row.look(desk)
        return
    outcome = run(row, desk)
    assert outcome.verdict in ("works", "on purpose"), outcome.seen


def test_no_row_is_expected_to_fail_and_none_is_missing() -> None:
    """Every statement holds, or a page says why it does not."""
    assert [row.id for row in ROWS if row.missing is not None] == []
    assert [row.line for row in ROWS if row.expected_failure is not None] == []


@pytest.mark.promise("seeds.conformance")
def test_each_section_about_a_difference_has_a_row() -> None:
    """Every purpose is a heading of the page, and every such heading is shown by a row."""
    named = {row.on_purpose for row in ROWS if row.on_purpose is not None}
    page = (ROOT / PAGE).read_text("utf-8")
    sections = anchors("\n".join(re.findall(r"^### .*$", page, re.MULTILINE)))
    assert named == {f"{PAGE}#{section}" for section in sections}


def test_verdicts_are_counted_as_they_are() -> None:
    """A row that raises differs, one without its heading too, and a failure must be a failure."""

    def holds(_: object) -> str:
        return "seen"

    def fails(_: object) -> str:
        raise AssertionError("not so")

    def breaks(_: object) -> str:
        raise OSError("broken")

    seed = Seed("9", "a seed")
    seed.row("1", "holds")(holds)
    seed.row("2", "fails")(fails)
    seed.row("3", "breaks")(breaks)
    seed.row("4", "on purpose", on_purpose="docs/README.md#reference")(holds)
    seed.row("5", "no such heading", on_purpose="docs/README.md#reference-of-all")(holds)
    seed.row("6", "fails as expected", expected_failure="later")(fails)
    seed.row("7", "holds against expectation", expected_failure="later")(holds)
    seed.row("8", "breaks, which is no expected failure", expected_failure="later")(breaks)
    outcomes: list[Outcome] = [run(row, None) for row in seed.rows]
    assert [outcome.verdict for outcome in outcomes] == [
        "works",
        "differs",
        "differs",
        "on purpose",
        "differs",
        "expected failure",
        "differs",
        "differs",
    ]
    assert "| 9 a seed | 8 | 1 | 1 | 1 | 5 | 0 |" in print_table([seed], outcomes)
