"""Problems of reading and storing: listed up to a number, then counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from anaphora.ingest.secrets.masking import mask_text
from anaphora.values.conversations import ImportProblem

UNKNOWN: Final = "no importer recognises this file"
"""The beginning of the problem of a file in no known format."""
EMPTY: Final = "file with no conversation or memory in it"
"""The kind of a file in a known format that gave nothing."""
_LONGEST: Final = 300


@dataclass(slots=True)
class Problems:
    """The first `most` problems, and how many more there were."""

    most: int
    kept: list[ImportProblem] = field(default_factory=list)
    _more: int = 0
    _last: str = ""

    def add(self, problem: ImportProblem) -> bool:
        """Keep a problem, or count it; whether it was kept."""
        if len(self.kept) < self.most:
            # A reader may quote what it cannot read.
            self.kept.append(replace(problem, reason=mask_text(problem.reason)))
            return True
        self._more += 1
        self._last = problem.path
        return False

    def summary(self) -> Iterator[ImportProblem]:
        """A problem with the number of those that were only counted, if there were any."""
        if self._more:
            yield ImportProblem(self._last, "further on", f"{self._more} more problems like these")

    def all(self) -> tuple[ImportProblem, ...]:
        """The listed problems, and the number of further ones."""
        return (*self.kept, *self.summary())


def shortened(text: str) -> str:
    """The beginning of a text out of a file, which may be of any length, for a problem."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
