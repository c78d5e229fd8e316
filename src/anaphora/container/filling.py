"""Makes the vectors of memories, notes and documents in the background of a namespace.

A caller makes those of a few short texts; the rest is made here, behind the calls, the long texts
last. Turns and sections of projects have a background of their own. A process that ends before
leaves what lacks a vector to the next question, in any process.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from anaphora.errors import AnaphoraError
from anaphora.index.backlog import IN_CALL
from anaphora.index.maintenance import Background

FILLED_AT_ONCE: Final = 256
"""Records that get their vectors in one step of the background."""


class Fill(Protocol):
    """What makes the vectors of one kind of records."""

    def __call__(self, limit: int, *, stopping: Callable[[], bool]) -> int:
        """Make those of at most `limit` records, until `stopping` is true; how many got theirs."""


class FillSome(Protocol):
    """The same within a call."""

    def __call__(self, limit: int, *, room: int) -> object:
        """Make those of at most `limit` records, of `room` characters in all."""


@dataclass(slots=True)
class VectorFilling:
    """The background of one namespace. `fills` gives what is filled, one kind after the other."""

    fills: Callable[[], tuple[Fill, ...]]
    worker: Background = field(default_factory=partial(Background, "anaphora-filling"))
    # Whether it was begun before a caller had a part made.
    _early: bool = False

    def in_call(self, fill: FillSome, limit: int) -> None:
        """Make a few vectors while a caller waits, once: then they are made behind the calls."""
        if self._early or not self.worker.running:
            self._early = False
            fill(limit, room=IN_CALL)

    def begin(self, *, early: bool = False) -> None:
        """Begin to make the vectors that are lacking; nothing where that is under way.

        `early`: nothing was made in a call before, so that the next one makes a few.
        """
        self._early = early
        self.worker.begin(self._fill)

    def _fill(self) -> None:
        stopping = self.worker.stopping.is_set
        with suppress(AnaphoraError):
            # In steps: closing the home must not wait for all of them.
            for fill in self.fills():
                while not stopping() and fill(FILLED_AT_ONCE, stopping=stopping):
                    pass
