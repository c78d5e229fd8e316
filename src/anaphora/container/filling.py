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
"""Records whose vectors are computed in one background step."""


class Fill(Protocol):
    """Computes the vectors of one kind of records."""

    def __call__(self, limit: int, *, stopping: Callable[[], bool]) -> int:
        """Process at most `limit` records, until `stopping` is true; returns how many."""


class FillSome(Protocol):
    """The same within a call, bounded by characters."""

    def __call__(self, limit: int, *, room: int) -> object:
        """Process at most `limit` records with `room` characters in all."""


@dataclass(slots=True)
class VectorFilling:
    """The background work of one namespace. `fills` returns one function per kind of records."""

    fills: Callable[[], tuple[Fill, ...]]
    worker: Background = field(default_factory=partial(Background, "anaphora-filling"))
    # Whether it began before a call computed some vectors itself.
    _early: bool = False

    def in_call(self, fill: FillSome, limit: int) -> None:
        """Compute a few vectors within a call, once; the rest follows in the background."""
        if self._early or not self.worker.running:
            self._early = False
            fill(limit, room=IN_CALL)

    def begin(self, *, early: bool = False) -> None:
        """Start computing missing vectors, unless that is running already.

        `early`: no call has computed any yet, so the next one computes a few.
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
