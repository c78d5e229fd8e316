"""How much one file may ask of an import: what is beyond is left out, and said with its place.

In: nothing. Out: `Bounds`, and a collector of problems that never grows without end. They are far
above what anybody's export has, and keep what a few bytes can become within what a machine has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from anaphora.values.conversations import ImportProblem

_MOST_WORDS: Final = 300


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is taken of one file.

    `characters` is the length of one JSON value (a line, an element, a file's only value) and of
    the turns that are held at once; `parts` how many values lie within one. A zip file may become
    `times` its own size in bytes when it is unpacked, and `unpacked` in any case. `messages` and
    `conversations` are those whose identities are held while a file is read, `problems` those
    that a file is told of one by one.
    """

    characters: int = 64 << 20
    parts: int = 4_000_000
    unpacked: int = 256 << 20
    times: int = 200
    messages: int = 1_000_000
    conversations: int = 100_000
    problems: int = 1_000

    def room(self, packed: int) -> int:
        """The bytes that a zip file of `packed` bytes may become."""
        return max(self.unpacked, self.times * packed)


BOUNDS: Final = Bounds()


@dataclass(slots=True)
class Problems:
    """The first `most` problems, and how many more there were."""

    most: int
    kept: list[ImportProblem] = field(default_factory=list)
    _more: int = 0
    _last: str = ""

    def take(self, problem: ImportProblem) -> bool:
        """Keep a problem, or count it; whether it was kept."""
        if len(self.kept) < self.most:
            self.kept.append(problem)
            return True
        self._more += 1
        self._last = problem.path
        return False

    def rest(self) -> Iterator[ImportProblem]:
        """What says how many were only counted, if any were."""
        if self._more:
            yield ImportProblem(self._last, "further on", f"{self._more} more problems like these")

    def all(self) -> tuple[ImportProblem, ...]:
        """Those that were kept, and how many more there were."""
        return (*self.kept, *self.rest())


def shortened(text: str) -> str:
    """The beginning of a text out of a file, which may be of any length, for a problem."""
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"
