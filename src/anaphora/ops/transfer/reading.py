"""What lines of an export are read into a namespace with: where they go, and in which steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from anaphora.ops.transfer.lines import Line

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

BATCH = 256
"""Lines that are written in one transaction."""

ItemT = TypeVar("ItemT")

Outcome = Literal["added", "changed", "known", "forgotten"]
"""What became of a line: it was not here, something of it, all of it, or it was deleted here."""


@dataclass(slots=True)
class Target:
    """The namespace that lines come into. `again`: what was forgotten here comes back, too.

    `gone` are the memories that were deleted here for good, `deleted_threads` the threads of the
    export that stay away for that reason. `memory_ids` and `thread_ids` tell under which id
    something of the export is here, where that is another one; `turn_hashes` are those of the turns
    of threads that came in, by their id here; `touched_notes` the ids here of notes that came or
    changed. `problem` is told the number and the reason of a line that cannot come in.
    """

    services: NamespaceServices
    again: bool
    gone: frozenset[str]
    problem: Callable[[int, str], None]
    counts: Counter[str]
    memory_ids: dict[str, str] = field(default_factory=dict)
    thread_ids: dict[str, str] = field(default_factory=dict)
    turn_hashes: dict[str, list[str]] = field(default_factory=dict)
    deleted_threads: set[str] = field(default_factory=set)
    touched_notes: list[str] = field(default_factory=list)

    def count(self, outcomes: Iterable[Outcome], prefix: str = "") -> None:
        """Count what became of lines of a kind; what is forgotten counts for all kinds together."""
        self.counts.update(one if one == "forgotten" else prefix + one for one in outcomes)


class LineReader(ABC):
    """Reads the lines of a kind into one namespace."""

    last: ClassVar[bool] = False
    """Whether what was read is written only when all lines of the export were."""

    def __init__(self, target: Target) -> None:
        self.target = target

    @abstractmethod
    def read(self, number: int, line: Line) -> None:
        """Read the line with this number. ValueError for one that cannot be read."""

    @abstractmethod
    def flush(self) -> None:
        """Write what was read and is not written yet."""


class BatchReader(LineReader, Generic[ItemT]):
    """Reads lines that stand each for itself, and writes a batch of them at once."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._batch: list[tuple[int, ItemT]] = []

    def read(self, number: int, line: Line) -> None:
        """As `LineReader.read`."""
        item = self.parse(line)
        if item is not None:
            self._batch.append((number, item))
        if len(self._batch) >= BATCH and not self.last:
            self.flush()

    def flush(self) -> None:
        """As `LineReader.flush`."""
        batch, self._batch = self._batch, []
        if batch:
            self.write(batch)

    @abstractmethod
    def parse(self, line: Line) -> ItemT | None:
        """What a line stands for; None where there is nothing left to write. ValueError."""

    @abstractmethod
    def write(self, batch: Sequence[tuple[int, ItemT]]) -> None:
        """Write what lines stand for, each with the number of its line."""
