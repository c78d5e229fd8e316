"""docs/durability.md and the tests say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = TESTS.parent / "docs" / "durability.md"
_LINE = re.compile(r"^- \*\*(D\d+)\*\* ", re.MULTILINE)
_ROW = re.compile(r"^\| (D\d+|all) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def _rows() -> dict[str, list[tuple[str, str]]]:
    return {row[1]: _TEST.findall(row[2]) for row in _ROW.finditer(DOCUMENT.read_text())}


def _tests_in(file: str) -> set[str]:
    nodes = ast.walk(ast.parse((TESTS / file).read_text()))
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.promise("durable.document")
def test_every_line_names_tests_that_are_there() -> None:
    """Lines are numbered without gaps, each has a row of its own, and each named test exists."""
    lines = _LINE.findall(DOCUMENT.read_text())
    assert lines == [f"D{number}" for number in range(1, len(lines) + 1)]
    rows = _rows()
    assert [name for name in rows if name != "all"] == lines
    assert [name for name, tests in rows.items() if not tests] == []
    named = {one for tests in rows.values() for one in tests}
    assert [(file, test) for file, test in sorted(named) if test not in _tests_in(file)] == []


@pytest.mark.promise("durable.document")
def test_every_test_here_is_named() -> None:
    """No test of this folder shows something that the document does not say."""
    named = {one for tests in _rows().values() for one in tests}
    here = {
        (f"durability/{file.name}", test)
        for file in Path(__file__).parent.glob("test_*.py")
        for test in _tests_in(f"durability/{file.name}")
    }
    assert sorted(here - named) == []
