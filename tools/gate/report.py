"""What was checked, one line a check, and how long each surface took."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Outcome", "Report", "must"]

_MOST: Final = 3_000
"""Characters of what went wrong that are shown."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check; `problem` says what went wrong, and is empty where nothing did."""

    surface: str
    check: str
    problem: str = ""


@dataclass(slots=True)
class Report:
    """The outcomes of one environment."""

    environment: str
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _surface: str = ""

    @contextmanager
    def surface(self, name: str) -> Iterator[None]:
        """Checks of one surface. What fails outside of a check fails the surface."""
        self._surface, began, before = name, time.monotonic(), len(self.outcomes)
        try:
            with self.check("the surface can be tried"):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began
        # Where checks ran and nothing failed around them, they say it all.
        if len(self.outcomes) > before + 1 and not self.outcomes[-1].problem:
            self.outcomes.pop()

    @contextmanager
    def check(self, name: str) -> Iterator[None]:
        """One check: it failed if anything is raised."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - each kind of failure is one of the check
            said = str(error).strip() or traceback.format_exc()
            problem = f"{type(error).__name__}: {said}"
            if len(problem) > _MOST:
                problem = f"{problem[: _MOST // 2]}\n…\n{problem[-_MOST // 2 :]}"
        else:
            problem = ""
        self.outcomes.append(Outcome(self._surface, name, problem))

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return sum(bool(outcome.problem) for outcome in self.outcomes)

    def lines(self) -> Iterator[str]:
        """One line a check, with what went wrong below it."""
        for outcome in self.outcomes:
            state = "FAIL" if outcome.problem else "ok"
            yield f"{self.environment:<11} {outcome.surface:<8} {state:<4} {outcome.check}"
            for line in outcome.problem.splitlines():
                yield f"    {line}"
        times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items())
        passed = len(self.outcomes) - self.failed
        yield f"{self.environment}: {passed} passed, {self.failed} failed ({times})"


def must(holds: object, otherwise: object) -> None:
    """Fail the check with this reason unless something holds."""
    if not holds:
        raise AssertionError(str(otherwise))
