"""Statements of a seed that are tried by a function: its place, its words, and what differs.

In: functions that use the product as a caller would and return what they saw. Out: rows for
`test_conformance.py`. A row with an anchor shows what the product does instead, and the page must
have that heading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Row", "Seed", "refusal", "refusals"]

ROOT = Path(__file__).resolve().parents[2]
Look = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of a seed: where it stands, what it says in our words, and how it is tried.

    `on_purpose` is the anchor ("docs/page.md#heading") that says what the product does instead.
    """

    seed: str
    line: str
    says: str
    look: Look
    on_purpose: str | None = None

    @property
    def id(self) -> str:
        """A name for the row, of its seed, line and function."""
        return f"{self.seed}:{self.line}:{self.look.__name__}"


class Seed:
    """The rows of one seed, in the order in which they are written."""

    def __init__(self, number: str, title: str) -> None:
        self.number = number
        self.title = title
        self.rows: list[Row] = []

    def row(self, line: str, says: str, *, on_purpose: str | None = None) -> Callable[[Look], Look]:
        """Register a function as the trial of a statement."""

        def register(look: Look) -> Look:
            self.rows.append(Row(self.number, line, says, look, on_purpose))
            return look

        return register


def refusal(kind: type[Exception], call: Callable[[], object]) -> str:
    """The words of the error that a call must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised")


def refusals(kind: type[Exception], call: Callable[[Any], object], values: Iterable[Any]) -> str:
    """The words of the last of the errors that a call must raise for each of these values."""
    return [refusal(kind, partial(call, value)) for value in values][-1]
