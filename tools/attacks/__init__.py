"""`make attacks`: what was tried against Anaphora, tried again on this build.

A module here has attacks of one kind. An attack is a function that gets an empty folder, plays an
attacker through public interfaces, and raises where the attack succeeds:

    @attack("F7", "medium", "a clock that is ahead cannot outlive what is said later")
    def clock_ahead(folder: Path) -> None: ...

`findings.py` lists the findings; one that has no attack is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

__all__ = ["ATTACKS", "Attack", "Pace", "Severity", "attack"]

Severity = Literal["high", "medium", "low"]
Pace = Literal["", "long", "timed"]
"""`long`: begun first. `timed`: it measures time, and runs while no other one does."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack: the name of its finding, how bad it would be, what must hold, and the trial."""

    finding: str
    severity: Severity
    holds: str
    run: Callable[[Path], None]
    pace: Pace = ""


ATTACKS: Final[list[Attack]] = []
"""Every attack whose module was imported."""


def attack(
    finding: str, severity: Severity, holds: str, *, pace: Pace = ""
) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Register a function as the attack of a finding; `holds` is what the product promises."""

    def register(run: Callable[[Path], None]) -> Callable[[Path], None]:
        ATTACKS.append(Attack(finding, severity, holds, run, pace))
        return run

    return register
