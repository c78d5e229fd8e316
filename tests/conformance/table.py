"""The table: rows that run the product, and the verdict that each gives.

In: rows, each a function that uses the product as a caller would and returns what it saw. Out: a
verdict for each. A row that fails differs; one that names a page differs on purpose, and then the
page must hold the words that say so; one that is missing must still be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = ["Outcome", "Row", "Seed", "print_table", "refusal", "run"]

ROOT = Path(__file__).resolve().parents[2]
Verdict = Literal["works", "differs on purpose", "missing", "differs"]
Look = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of a seed: where it stands, what it says in our words, and how it is tried.

    `on_purpose` is (page, words on it) where the product does something else on purpose; `missing`
    is what the statement still lacks.
    """

    seed: str
    line: str
    says: str
    look: Look
    on_purpose: tuple[str, str] | None = None
    missing: str | None = None

    @property
    def id(self) -> str:
        """A name for the row, of its seed, line and function."""
        return f"{self.seed}:{self.line}:{self.look.__name__}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row."""

    row: Row
    verdict: Verdict
    seen: str


class Seed:
    """The rows of one seed, in the order in which they are written."""

    def __init__(self, number: str, title: str) -> None:
        self.number = number
        self.title = title
        self.rows: list[Row] = []

    def row(
        self,
        line: str,
        says: str,
        *,
        on_purpose: tuple[str, str] | None = None,
        missing: str | None = None,
    ) -> Callable[[Look], Look]:
        """Register a function as the trial of a statement."""

        def register(look: Look) -> Look:
            self.rows.append(Row(self.number, line, says, look, on_purpose, missing))
            return look

        return register


def refusal(kind: type[Exception], call: Callable[[], object]) -> str:
    """The words of the error that a call must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised")


def run(row: Row, desk: Any) -> Outcome:
    """Try one row at a desk of its own."""
    try:
        seen = row.look(desk)
        if row.on_purpose is not None:
            page, words = row.on_purpose
            assert words in _words_of(page), f"{page} does not say: {words}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the row differs
        return Outcome(row, "differs", f"{type(error).__name__}: {error}")
    if row.missing is not None:
        return Outcome(row, "missing", f"{row.missing} ({seen})")
    return Outcome(row, "differs on purpose" if row.on_purpose else "works", seen)


def print_table(seeds: Iterable[Seed], outcomes: Iterable[Outcome]) -> str:
    """The table as Markdown, its counts first."""
    by_seed: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_seed.setdefault(outcome.row.seed, []).append(outcome)
    verdicts: tuple[Verdict, ...] = ("works", "differs on purpose", "differs", "missing")
    lines = ["| seed | rows | " + " | ".join(verdicts) + " |", "|---|---:|---:|---:|---:|---:|"]
    total = dict.fromkeys(verdicts, 0)
    for seed in seeds:
        counts = {v: sum(o.verdict == v for o in by_seed[seed.number]) for v in verdicts}
        lines.append(_counted(f"{seed.number} {seed.title}", counts))
        total = {v: total[v] + counts[v] for v in verdicts}
    lines.append(_counted("all", total))
    for seed in seeds:
        lines += ["", f"## Seed {seed.number}: {seed.title}", ""]
        lines += ["| line | it says | verdict | seen |", "|---|---|---|---|"]
        for one in by_seed[seed.number]:
            where = f" ({one.row.on_purpose[0]})" if one.row.on_purpose else ""
            cells = (one.row.line, one.row.says, one.verdict + where, one.seen)
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _counted(title: str, counts: dict[Verdict, int]) -> str:
    return f"| {title} | {sum(counts.values())} | {' | '.join(map(str, counts.values()))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:220]


@cache
def _words_of(page: str) -> str:
    return re.sub(r"\s+", " ", (ROOT / page).read_text())
