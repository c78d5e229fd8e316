"""The table: rows that run the product, and the verdict that each gives.

In: rows, each a function that uses the product as a caller would and returns what it saw. Out: a
verdict for each. A row that raises differs. A row with an anchor differs on purpose: it shows what
the product does instead, and the page must have that heading. An expected failure must fail, by an
assertion. A missing row has no answer in the product.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

from tests.docs.pages import anchors

__all__ = ["ROOT", "Outcome", "Row", "Seed", "print_table", "refusal", "refusals", "run"]

ROOT = Path(__file__).resolve().parents[2]
Verdict = Literal["works", "on purpose", "expected failure", "differs", "missing"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Look = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Row:
    """One statement of a seed: where it stands, what it says in our words, and how it is tried.

    `on_purpose` is the anchor ("docs/page.md#heading") that says what the product does instead;
    `expected_failure` is why the statement does not hold yet; `missing` is what it still
    lacks. `sockets`: the row talks to a server on the loopback.
    """

    seed: str
    line: str
    says: str
    look: Look
    on_purpose: str | None = None
    expected_failure: str | None = None
    missing: str | None = None
    sockets: bool = False

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
        on_purpose: str | None = None,
        expected_failure: str | None = None,
        missing: str | None = None,
        sockets: bool = False,
    ) -> Callable[[Look], Look]:
        """Register a function as the trial of a statement."""

        def register(look: Look) -> Look:
            row = Row(self.number, line, says, look, on_purpose, expected_failure, missing, sockets)
            self.rows.append(row)
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


def run(row: Row, desk: Any) -> Outcome:
    """Try one row at a desk of its own."""
    try:
        seen = row.look(desk)
        if row.on_purpose is not None:
            page, _, anchor = row.on_purpose.partition("#")
            assert anchor in _anchors_of(page), f"{page} has no heading #{anchor}"
    except AssertionError as error:
        verdict: Verdict = "expected failure" if row.expected_failure else "differs"
        return Outcome(row, verdict, _told(error))
    except Exception as error:  # noqa: BLE001 - any error of the product is a difference
        return Outcome(row, "differs", _told(error))
    if row.expected_failure is not None:
        return Outcome(row, "differs", f"expected to fail, but it holds: {seen}")
    if row.missing is not None:
        return Outcome(row, "missing", f"{row.missing} ({seen})")
    return Outcome(row, "on purpose" if row.on_purpose else "works", seen)


def _told(error: Exception) -> str:
    """An error with the line that raised it: many assertions have no words."""
    line = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(line.filename).name}:{line.lineno}"
    return f"{type(error).__name__}: {str(error) or line.line} ({place})"


def print_table(seeds: Iterable[Seed], outcomes: Iterable[Outcome]) -> str:
    """The table as Markdown, its counts first."""
    by_seed: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        by_seed.setdefault(outcome.row.seed, []).append(outcome)
    lines = ["| seed | rows | " + " | ".join(VERDICTS) + " |", "|---|" + "---:|" * 6]
    total = dict.fromkeys(VERDICTS, 0)
    for seed in seeds:
        counts = {v: sum(o.verdict == v for o in by_seed[seed.number]) for v in VERDICTS}
        lines.append(_counted(f"{seed.number} {seed.title}", counts))
        total = {v: total[v] + counts[v] for v in VERDICTS}
    lines.append(_counted("all", total))
    for seed in seeds:
        lines += ["", f"## Seed {seed.number}: {seed.title}", ""]
        lines += ["| line | it says | verdict | seen |", "|---|---|---|---|"]
        for outcome in by_seed[seed.number]:
            row = outcome.row
            where = f" ({row.on_purpose})" if row.on_purpose else ""
            cells = (row.line, row.says, outcome.verdict + where, outcome.seen)
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines)


def _counted(title: str, counts: Mapping[Verdict, int]) -> str:
    return f"| {title} | {sum(counts.values())} | {' | '.join(map(str, counts.values()))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:220]


@cache
def _anchors_of(page: str) -> set[str]:
    return anchors((ROOT / page).read_text("utf-8"))
