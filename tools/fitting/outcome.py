"""What a step of a fit comes to: constants before and after, and figures of what was held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.fitting.constants import Constant, Value

__all__ = ["Figure", "Outcome", "table"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured on what was held out, with the old constants and with the new ones."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one step: the values that it found, and its figures.

    `notes` say in a line what cannot be read off numbers.
    """

    found: Mapping[Constant, Value]
    held_out: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()


def table(outcome: Outcome, step: str) -> list[str]:
    """Rows of Markdown: of each constant and each figure, before and after."""
    rows = []
    for constant, value in outcome.found.items():
        before, after = constant.rounded(constant.read()), constant.rounded(value)
        rows.append(f"| {step} | `{constant.shown}` | {before} | {after} |")
    rows += [f"| {step} | {note} | | |" for note in outcome.notes]
    rows += [
        f"| {step} | {one.name} | {one.before:.3f} | {one.after:.3f} |" for one in outcome.figures
    ]
    return [*rows, f"| {step} | *held out: {outcome.held_out}* | | |"]
