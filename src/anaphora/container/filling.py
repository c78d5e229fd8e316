"""Makes the vectors of a namespace: those of its records in its background, or all at once.

A caller makes those of a few short texts; the rest is made here, behind the calls, the long texts
last. Turns and sections of projects have a background of their own. A process that ends before
leaves what lacks a vector to the next question, in any process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from anaphora.calls.limits import part_of_time, wait_within
from anaphora.calls.progress import Progress, labelled
from anaphora.container.forgetting import clean_due
from anaphora.errors import AnaphoraError
from anaphora.index.backlog import IN_CALL
from anaphora.index.maintenance import Background
from anaphora.values.memories import Reindexed

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.reading.service import ReaderService

FILLED_AT_ONCE: Final = 256
"""Records whose vectors are computed in one background step."""

FEW: Final = 32
"""Records without a vector that a question embeds first: short texts take some 60 ms."""

SOON: Final = 512
PATIENCE: Final = 1.0
"""Vectors that the background makes in about a second, and how long a question waits for it."""


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
    """The background work of one namespace.

    `fills` returns one function per kind of records; `follow` is called once some were processed.
    """

    fills: Callable[[], tuple[Fill, ...]]
    follow: Callable[[], None]
    worker: Background = field(default_factory=partial(Background, "anaphora-filling"))

    def in_call(self, fill: FillSome, pending: int) -> None:
        """Compute a few of the `pending` vectors within a call; the rest follows in the background.

        If that is at work already, it is waited for where it is soon done.
        """
        if not self.worker.running:
            fill(FEW, room=IN_CALL)
        elif pending <= SOON:
            wait_within(self.worker.wait, part_of_time(PATIENCE))

    def begin(self) -> None:
        """Start computing missing vectors, unless that is running already."""
        self.worker.begin(self._fill)

    def _fill(self) -> None:
        stopping, has_filled = self.worker.stopping.is_set, False
        with suppress(AnaphoraError):
            # In steps: closing the home must not wait for all of them.
            for fill in self.fills():
                while not stopping() and fill(FILLED_AT_ONCE, stopping=stopping):
                    has_filled = True
        if has_filled and not stopping():
            self.follow()


def reindex(
    services: NamespaceServices, progress: Progress | None, *, anew: bool, links: bool
) -> Reindexed:
    """Embed every turn, memory and record of a feature that has no vector yet.

    With `links` all that is due is linked as well, else behind the call. `anew`: whatever was
    linked, too, as the vectors are those of another embedder.
    """
    turns = services.conversation.turn_index.sync(embed="all", progress=labelled(progress, "turns"))
    memories = services.memory.writer.fill_vectors(progress=labelled(progress, "memories"))
    services.memory.settle_index()
    for feature in services.features:
        feature.fill(progress)
    if (away_error := services.embedder.away) is not None:
        raise away_error
    if anew:
        services.links.forget_all()
    if links:
        services.finish_links(progress=labelled(progress, "links"))
    return Reindexed(
        services.embedder.name, turns.embedded, memories.embedded, turns.pending + memories.failed
    )


def wait_until_ready(services: NamespaceServices, timeout: float | None) -> bool:
    """Wait until the model is loaded and everything known is indexed; see `Memory.ready`."""
    timeout = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
    embedder, reader = services.embedder, services.container.reader
    if not embedder.ready(timeout):
        if embedder.failure is not None:
            raise embedder.failure
        return False
    if not _is_reader_ready(reader, timeout):
        return False
    services.conversation.turn_index.sync(embed="all")
    services.memory.writer.fill_vectors()
    services.memory.index.sync()
    more = [index for feature in services.features for index in feature.fill(None)]
    indexes: tuple[TurnIndex | MemoryIndex, ...] = (
        services.conversation.turn_index,
        services.memory.index,
        *more,
    )
    is_indexed = all(index.wait(timeout) for index in indexes)
    is_clean = clean_due(services.container)
    return services.finish_links(timeout) and is_indexed and is_clean


def _is_reader_ready(reader: ReaderService | None, timeout: float | None) -> bool:
    """Wait for a loading reader; answers report its failure."""
    if reader is None or not reader.begun:
        return True
    return reader.ready(timeout) or reader.failure is not None
