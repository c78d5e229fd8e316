"""The vectors of turns that exceed the limit for memory: in LanceDB on disk.

The index file remains authoritative: if LanceDB's folder is gone or torn, its vectors are scanned
in the file until the folder is written again. LanceDB is not imported before there is a folder.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import IndexBusy, IndexLost
from anaphora.index.turns.ledger import TurnIndexFile
from anaphora.index.turns.records import AnnCheckpoint
from anaphora.index.vectors.ann import ANN_ERRORS, AnnStore, Batch, available
from anaphora.index.vectors.matrix import from_float16

STEP: Final = 8192
"""Newer parts that gather in memory before they go to the ANN index in one batch."""

STEP_AT_CLOSE: Final = 1024
"""The same for a process that ends: reading fewer again is faster than writing them."""

NEAREST: Final = 256
"""Parts of the ANN index that a question gets cosines of: 11 ms, and twice as many 17."""

FEW: Final = 10_000
"""Texts that are read and compared one by one if a query is limited to them (60 ms)."""

_MOST: Final = 8192
_VECTORS: Final = 2_000
_AT_ONCE: Final = 500


def ann_folder(embedder: str) -> str:
    """The name of the folder with the ANN index of one embedder's vectors."""
    return hashlib.blake2b(embedder.encode(), digest_size=8).hexdigest()


class OpenLedger:
    """The open index file, and its vectors for readers that do not hold the lock of the index.

    Readers pass the `file` that they began with: the numbers of vectors belong to one index file,
    and stand for other texts in another one.
    """

    def __init__(self, dimensions: int, lock: threading.RLock) -> None:
        self.lock = lock
        self.ledger: TurnIndexFile | None = None
        self._dimensions = dimensions

    def vectors(self, file: TurnIndexFile | None, since: int, upto: int) -> Iterator[Batch]:
        """Vectors of the file by their numbers. Raises IndexLost if another file is open now.

        The lock is only held for each batch, so that queries need not wait for all of them.
        """
        while ids := (stored_vectors := self._read(file, (since, upto, _VECTORS)))[0]:
            since = ids[-1]
            yield self._batch(*stored_vectors)

    def some_vectors(
        self, file: TurnIndexFile | None, numbers: NDArray[np.int64]
    ) -> Iterator[Batch]:
        """Vectors of these numbers, without deleted ones. Raises IndexLost as `vectors`."""
        for start in range(0, len(numbers), _AT_ONCE):
            yield self._batch(*self._read(file, numbers[start : start + _AT_ONCE].tolist()))

    def _read(
        self, file: TurnIndexFile | None, which: tuple[int, int, int] | list[int]
    ) -> tuple[list[int], list[bytes]]:
        with self.lock:
            ledger = self.ledger
            if ledger is None or ledger is not file:
                raise IndexLost("the index was opened anew")
            return ledger.vectors(which, self._dimensions)

    def _batch(self, ids: list[int], blobs: list[bytes]) -> Batch:
        """Stored vectors as (keys, parts): the number of a text is repeated for each part."""
        counts = [len(blob) // (2 * self._dimensions) for blob in blobs]
        parts = from_float16(b"".join(blobs), self._dimensions)
        return np.repeat(np.array(ids, np.int64), counts), parts


class TurnAnn:
    """The ANN index of one embedder; `cap` None: never used (LanceDB stores vectors in clear)."""

    def __init__(
        self, folder: Path, embedder: tuple[str, int], cap: int | None, stored: OpenLedger
    ) -> None:
        self._embedder, self._dimensions = embedder
        self.folder = folder / ann_folder(self._embedder)
        self.cap = cap
        self.stored = stored
        self.failed = False
        self._store: AnnStore | None = None
        self._broken: tuple[str, int] | None = None

    def writable(self) -> bool:
        """Whether an ANN index may be written at all."""
        return self.cap is not None and available()

    def beyond(self, parts: int) -> bool:
        """Whether more than the cap is scanned in memory, since LanceDB is not installed."""
        return self.cap is not None and parts > self.cap and not available()

    def new_store(self) -> AnnStore:
        """The current state of the folder."""
        store = AnnStore(self.folder, self._embedder, self._dimensions)
        store.open()
        return store

    def usable(self, checkpoint: AnnCheckpoint) -> int:
        """Up to which number of a vector the ANN index can answer; 0 if it cannot."""
        has_failed, self.failed = self.failed, False
        store_before = self._store
        if not checkpoint.generation or not self.writable():
            self._store = None
            return 0
        if store_before is not None and not has_failed and _fits(store_before, checkpoint):
            return store_before.meta.upto
        store = self.new_store()
        if (
            not _fits(store, checkpoint)
            or (store.meta.generation, store.meta.version) == self._broken
        ):
            self._store = None
            return 0
        self._store = store
        return store.meta.upto

    def view(self, ids: list[int]) -> AnnView | None:
        """A view of the texts with these numbers, in ascending order; None without an index."""
        if self._store is None or not ids:
            return None
        return AnnView(np.array(ids, np.int64), self, self._store, self.stored.ledger)

    def write(self, file: TurnIndexFile, since: int, target: int) -> AnnCheckpoint | None:
        """Write the file's vectors after `since`, up to `target`; None if that fails."""
        store = self.new_store()
        if store.meta.upto != since or not since:
            if since:
                self.failed = True
                return None
            store.discard()
        try:
            meta = store.extend(self.stored.vectors(file, since, target), target)
        except (IndexLost, IndexBusy, *ANN_ERRORS):
            return None
        return AnnCheckpoint(meta.generation, target, target)

    def give_up(self, store: AnnStore) -> None:
        """Stop using an unreadable ANN index until it is written anew."""
        self._broken = (store.meta.generation, store.meta.version)
        self.failed = True


def _fits(store: AnnStore, checkpoint: AnnCheckpoint) -> bool:
    # Beyond `upto` there may be vectors of a writer that was killed before its checkpoint.
    meta = store.meta
    return (
        meta.generation == checkpoint.generation
        and checkpoint.upto <= meta.upto <= checkpoint.target
    )


@dataclass(frozen=True, slots=True)
class AnnView:
    """B texts of the ANN index at one moment; `ids` (B,) are the numbers of their vectors."""

    ids: NDArray[np.int64]
    _ann: TurnAnn
    _store: AnnStore
    _file: TurnIndexFile | None

    def best(self, vector: NDArray[np.float32], limit: int = 0) -> NDArray[np.float32]:
        """The cosine of the best part of each text, shape (B,), 0 for all but the nearest.

        `limit` is how many parts are searched, 0 for NEAREST.
        """
        try:
            keys, cosines, _ = self._store.search(vector, limit or NEAREST)
            if not (np.isfinite(cosines).all() and (np.abs(cosines) < 1.01).all()):
                raise IndexLost("these are no cosines")
        except (IndexLost, *ANN_ERRORS):
            self._ann.give_up(self._store)
            return self._scan(vector, self._ann.stored.vectors(self._file, 0, int(self.ids[-1])))
        return self._spread([(keys, cosines)])

    def cosines_at(
        self, vector: NDArray[np.float32], places: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The same, exact for the texts at these indices of `ids`; the others may be 0."""
        if not len(places):
            return np.zeros(len(self.ids), np.float32)
        if len(places) > FEW:
            return self.best(vector, min(_MOST, NEAREST * len(self.ids) // len(places)))
        return self._scan(
            vector, self._ann.stored.some_vectors(self._file, self.ids[np.unique(places)])
        )

    def first_part(self, place: int) -> NDArray[np.float32] | None:
        """The first vector of the text at an index of `ids`; None if another file is open now."""
        with suppress(IndexLost, IndexBusy):
            for _, parts in self._ann.stored.some_vectors(self._file, self.ids[[place]]):
                if len(parts):
                    first_vector: NDArray[np.float32] = parts[0]
                    return first_vector
        return None

    def _scan(self, vector: NDArray[np.float32], batches: Iterator[Batch]) -> NDArray[np.float32]:
        cosines: list[Batch] = []
        # If the file is replaced while it is read, the next query opens the new one.
        with suppress(IndexLost, IndexBusy):
            cosines.extend((keys, parts @ vector) for keys, parts in batches)
        return self._spread(cosines)

    def _spread(self, batches: list[Batch]) -> NDArray[np.float32]:
        best_cosines = np.full(len(self.ids), -2.0, np.float32)
        for keys, cosines in batches:
            positions = np.minimum(np.searchsorted(self.ids, keys), len(self.ids) - 1)
            present = self.ids[positions] == keys
            np.maximum.at(best_cosines, positions[present], cosines[present])
        best_cosines[best_cosines < -1.5] = 0.0
        return best_cosines
