"""Writing the vectors of turns to LanceDB, and reading them back from the index file.

What was written counts once the file says so; a text that is forgotten while it is written takes
the checkpoint away. The index's lock is never held while vectors are written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import IndexLost
from anaphora.index.turns.ledger import Delta, Ledger, LedgerBusy
from anaphora.index.turns.records import AnnCheckpoint
from anaphora.index.turns.vectors import batch_of
from anaphora.index.vectors.ann import Batch

if TYPE_CHECKING:
    from anaphora.index.turns.core import IndexCore

_VECTORS = 2_000
_AT_ONCE = 500
_RETRY_SECONDS = 30.0


class AnnWriter:
    """What keeps the bulk of one index."""

    def __init__(self, core: IndexCore) -> None:
        self._core = core
        self._refused = -_RETRY_SECONDS

    def file(self) -> object:
        """The index file that is open now; None for none."""
        return self._core.ledger

    def vectors(self, file: object, since: int, upto: int) -> Iterator[Batch]:
        """Vectors of the file by their numbers; IndexLost where it is not the same file any more.

        The lock is held for moments only: whoever asks meanwhile must not wait for all of them.
        """
        while ids := (found := self._read(file, (since, upto, _VECTORS)))[0]:
            since = ids[-1]
            yield batch_of(*found, self._core.dimensions)

    def some_vectors(self, file: object, wanted: NDArray[np.int64]) -> Iterator[Batch]:
        """Vectors of these numbers, without those that are gone; IndexLost as above."""
        for start in range(0, len(wanted), _AT_ONCE):
            found = self._read(file, wanted[start : start + _AT_ONCE].tolist())
            yield batch_of(*found, self._core.dimensions)

    def _read(
        self, file: object, which: tuple[int, int, int] | list[int]
    ) -> tuple[list[int], list[bytes]]:
        with self._core.lock:
            ledger = self._core.ledger
            if ledger is None or ledger is not file:
                raise IndexLost("the index was opened anew")
            return ledger.vectors(which, self._core.dimensions)

    def due(self, limit: int) -> bool:
        """Whether more vectors lie in memory than the cap allows, `limit` more beside a bulk."""
        ledger, point, bulk = self._core.ledger, self._core.state.point, self._core.bulk
        if ledger is None or point is None or not ledger.on_disk or not bulk.writable():
            return False
        if time.monotonic() - self._refused < _RETRY_SECONDS:
            return False
        most = limit if point.bulk_upto else bulk.cap
        return self._core.state.parts > (most or 0) and point.last_vector > point.bulk_upto

    def commit(self) -> bool:
        """Write the vectors that are only in memory to the bulk. The caller has the right to."""

        def begin() -> tuple[Ledger, Delta]:
            ledger = self._core.opened()
            self._core.state.absorb(ledger)
            assert self._core.state.point is not None
            return ledger, self._core.state.point

        def move(before: AnnCheckpoint, after: AnnCheckpoint) -> bool:
            try:
                if self._core.opened() is not ledger or not ledger.move_bulk(before, after):
                    return False
            except LedgerBusy:
                return False
            self._core.state.absorb(ledger)
            return True

        ledger, point = self._core.with_index(begin)
        seen, since, target = point.bulk, point.bulk_upto, point.last_vector
        if target <= since:
            return True
        # Whatever is forgotten from here on takes this checkpoint away.
        claim = (
            AnnCheckpoint(seen.generation, seen.upto, target)
            if since
            else AnnCheckpoint("", 0, target)
        )
        written = None
        if self._core.with_index(lambda: move(seen, claim)):
            written = self._core.bulk.write(ledger, since, target)
        if written is not None and self._core.with_index(lambda: move(claim, written)):
            return True
        self._refused = time.monotonic()
        live = self._core.with_index(lambda: self._core.opened().bulk_embedders())
        self._core.home.remove_bulk_but(live)
        return False
