"""What every kind of line is read in with: where it goes, and what is counted of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anaphora.ops.transfer.lines import Line

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

BATCH = 256
"""Lines that are written in one transaction."""


@dataclass(slots=True)
class Target:
    """The namespace that lines come into. `again`: what was forgotten here comes back, too.

    `gone` are the memories that were deleted here for good. `memory_ids` and `thread_ids` tell
    under which id something of the export is here, where that is another one. `problem` is told the
    number and the reason of a line that cannot come in.
    """

    services: NamespaceServices
    again: bool
    gone: frozenset[str]
    problem: Callable[[int, str], None]
    counts: Counter[str]
    memory_ids: dict[str, str] = field(default_factory=dict)
    thread_ids: dict[str, str] = field(default_factory=dict)

    def count(self, outcomes: Iterable[str], prefix: str = "") -> None:
        """Count what became of lines: "added", "changed", "known", or "forgotten" for all kinds."""
        self.counts.update(one if one == "forgotten" else prefix + one for one in outcomes)


class LineReader(ABC):
    """Reads the lines of a kind into one namespace."""

    @abstractmethod
    def take(self, number: int, found: Line) -> None:
        """Take the line with this number. ValueError for one that cannot be read."""

    def flush(self) -> None:  # noqa: B027 - most kinds have nothing to do
        """Write what cannot wait: lines of another kind, or of another namespace, follow."""

    def finish(self) -> None:  # noqa: B027 - as above
        """Write what is left: all lines were read."""
