"""What the kinds of lines of an export share: a namespace to write, and the readers of lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from anaphora.store.lines import Line

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.values.conversations import ImportProblem

FORMAT = 1
"""The version of the format of an export."""
BATCH = 256
"""Lines that are written in one transaction."""

ItemT = TypeVar("ItemT")

Outcome = Literal["added", "changed", "known", "forgotten"]
"""The outcome of a line: it was new, changed a record, was known, or was forgotten before."""


@dataclass(slots=True)
class LoadTarget:
    """The namespace to import into. `again`: forgotten data is imported, too.

    `gone` are the memories that were deleted here for good, `deleted_threads` the threads of the
    export that are not imported for that reason. `memory_ids` and `thread_ids` map an id of the
    export to the id here, if that is another one; `turn_hashes` are those of the turns of imported
    threads, by their id here.
    `problem` is called with the number and the reason of a line that cannot be imported.
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

    def count(self, outcomes: Iterable[Outcome], prefix: str = "") -> None:
        """Count the outcomes of a kind of lines; "forgotten" is one count for all kinds."""
        self.counts.update(
            outcome if outcome == "forgotten" else prefix + outcome for outcome in outcomes
        )


@dataclass(frozen=True, slots=True)
class ExportSource:
    """A namespace as of one moment, to export.

    `hashes` are those of the turns of exported threads. Unreadable records are added to `problems`;
    `tell` is called with a label and a count during long work.
    """

    services: NamespaceServices
    hashes: Mapping[str, Sequence[str]]
    problems: list[ImportProblem]
    tell: Callable[[str, int], None]
    now: datetime


class LineReader(ABC):
    """Reads the lines of a kind into one namespace."""

    last: ClassVar[bool] = False
    """Whether to write only after all lines of the export were read."""

    def __init__(self, target: LoadTarget) -> None:
        self.target = target

    @abstractmethod
    def read(self, number: int, line: Line) -> None:
        """Read the line with this number. ValueError for one that cannot be read."""

    @abstractmethod
    def flush(self) -> None:
        """Write the lines that were read and not written yet."""

    def end(self) -> None:  # noqa: B027 - most readers have nothing to do
        """All lines of the export are written: do what needs them all."""


class BatchReader(LineReader, Generic[ItemT]):
    """Reads independent lines, and writes a batch of them at once."""

    def __init__(self, target: LoadTarget) -> None:
        super().__init__(target)
        self._batch: list[tuple[int, ItemT]] = []

    def read(self, number: int, line: Line) -> None:
        """As `LineReader.read`."""
        parsed_content = self.parse(line)
        if parsed_content is not None:
            self._batch.append((number, parsed_content))
        if len(self._batch) >= BATCH and not self.last:
            self.flush()

    def flush(self) -> None:
        """As `LineReader.flush`."""
        batch, self._batch = self._batch, []
        if batch:
            self.write(batch)

    @abstractmethod
    def parse(self, line: Line) -> ItemT | None:
        """The content of a line; None if there is nothing left to write. ValueError."""

    @abstractmethod
    def write(self, batch: Sequence[tuple[int, ItemT]]) -> None:
        """Write the contents of lines, each with the number of its line."""
