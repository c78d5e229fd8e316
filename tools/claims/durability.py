"""The guarantees of docs/durability.md: its numbered lines, and the tests in its table."""

from __future__ import annotations

import re

from tools.claims.prose import Page

__all__ = ["PAGE", "guarantees"]

PAGE = "docs/durability.md"
_LINE = re.compile(r"^- \*\*(D\d+)\*\* (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| (D\d+|all) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py::\w+)`")


def guarantees(page: Page) -> list[tuple[str, tuple[int, int], tuple[str, ...]]]:
    """Each guarantee: its number, where it stands, and the tests that hold it."""
    if page.name != PAGE:
        return []
    rows = {row[1]: _TEST.findall(row[2]) for row in _ROW.finditer(page.text)}
    return [
        (line[1], line.span(), tuple(f"tests/{test}" for test in rows.get(line[1], ())))
        for line in _LINE.finditer(page.text)
    ]
