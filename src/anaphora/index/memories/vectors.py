"""The vectors of memories: an exact scan in memory up to a cap, LanceDB beyond it.

LanceDB has the vectors up to a number of the database, the matrix in memory the newer ones; an
answer joins both. Without LanceDB everything is scanned, even beyond the cap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.rows import MemoryRows
from anaphora.index.rows import GrowingColumn
from anaphora.index.vectors.ann import AnnStore, Batch, available
from anaphora.index.vectors.matrix import (
    Matrix,
    Nearest,
    best_of,
    best_part,
    from_float16,
)
from anaphora.index.vectors.scan import Scan
from anaphora.settings import EXACT_CAP
from anaphora.store.records.vectors import RecordVectors
from anaphora.store.records.written import WrittenRecords

STEP: Final = 8192
"""Newer parts that gather in memory before they go to the ANN index in one batch."""

SHARE: Final = 2
"""A batch has at least 1/SHARE of the ANN index: its graph is rebuilt with each batch."""

FEW: Final = 2_000
"""If a filter leaves no more rows of the ANN index than this, they are read from the database."""

ROWS_FOR_ONE: Final = 40
"""In a million, reading a row takes 0.0075 ms, and each of the graph's `_MORE` answers 0.2 ms."""

_MORE: Final = 1.5
_MOST: Final = 8192

Cosines: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Located:
    """The rows of a mask with vectors in memory, their texts there, and how many are elsewhere."""

    keep: NDArray[np.bool_]
    rows: NDArray[np.int64]
    texts: NDArray[np.int64]
    far: int
    lacking: int
    # Whether these are all texts of the matrix, in order, so that none need be selected.
    every: bool


class MemoryVectors:
    """The vectors of one namespace's memories.

    One thread at a time, but for `write_ann` and `waiting`.
    """

    def __init__(
        self,
        folder: Path,
        vectors: RecordVectors,
        embedder: tuple[str, int],
        cap: int | None = EXACT_CAP,
    ) -> None:
        self._vectors = vectors
        self._embedder, self._dimensions = embedder
        # None: never on disk (in a sealed home vectors must not be stored in clear).
        self._cap = cap
        self.ann = AnnStore(folder, self._embedder, self._dimensions)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        # Why the ANN index could not be read, "" while it can.
        self.lost = ""
        self._ids: Sequence[str] = ()
        self._matrix = Matrix(self._dimensions)
        self._scan = Scan(self._matrix)
        self._entries = GrowingColumn(fill=-1)
        # The row that each text of the matrix was added for; the row may have a newer text.
        self._row_of = GrowingColumn()
        self._located: _Located | None = None
        self.wants_purge = False
        self._ann_seqs = np.empty(0, np.int64)
        self._ann_rows = np.empty(0, np.int64)
        self._far = GrowingColumn(np.bool_)
        self.upto = 0

    @property
    def _entry(self) -> NDArray[np.int64]:
        """The text of the matrix that each row has, -1 for none."""
        return self._entries.view()

    @property
    def _in_ann(self) -> NDArray[np.bool_]:
        """Whether the vector of each row is on disk only."""
        return self._far.view()

    @property
    def parts(self) -> int:
        """How many parts are in memory."""
        return len(self._matrix.view().parts)

    def due(self) -> bool:
        """Whether enough vectors have gathered to go to the ANN index in one batch."""
        return self.over_cap() and self.parts > max(STEP, len(self._ann_seqs) // SHARE)

    def over_cap(self) -> bool:
        """Whether some of the vectors in memory belong to the ANN index."""
        if self._cap is None or not available():
            return False
        return self.parts > (0 if len(self._ann_seqs) else self._cap)

    def beyond(self) -> bool:
        """Whether more than the cap is scanned, since LanceDB is not installed."""
        return self._cap is not None and self.parts > self._cap and not available()

    def load(self, rows: MemoryRows) -> None:
        """Load all vectors."""
        self.reset()
        if self._cap is not None and available():
            meta = self.ann.open()
            self.upto = max(self.upto, meta.upto)
            if meta.upto:
                numbered_owners = self._vectors.numbers(self._embedder, meta.upto)
                if numbered_owners:
                    numbers, owners = zip(*numbered_owners, strict=True)
                    self._ann_seqs = np.array(numbers, np.int64)
                    self._ann_rows = rows.rows(owners)
                self._fit(len(rows))
                self._in_ann[self._ann_rows[self._ann_rows >= 0]] = True
        self._matrix.reserve(len(rows) + len(rows) // 8)
        self.sync(rows)

    def sync(self, rows: MemoryRows) -> None:
        """Load vectors that are newer than `upto`."""
        self._follow(rows)
        if not len(rows):
            # No row can have a vector: those of records of other kinds need not be read.
            return
        width = 2 * self._dimensions
        owners, blob = tuple[str, ...](), b""
        for batch in self._vectors.of_any(self._embedder, self.upto):
            owners, blob = (*owners, *batch.record_ids), blob + batch.data
            # The parts of the last record may continue in the next batch.
            whole_count = len(owners) - next(
                (at for at, owner in enumerate(reversed(owners)) if owner != owners[-1]),
                len(owners),
            )
            self._add_vectors(owners[:whole_count], blob[: whole_count * width], rows)
            owners, blob, self.upto = owners[whole_count:], blob[whole_count * width :], batch.seq
        self._add_vectors(owners, blob, rows)

    def take(self, rows: MemoryRows, written: WrittenRecords) -> None:
        """Add the vectors of records that were just written: all that are newer than `upto`."""
        self._follow(rows)
        if written.vectors and written.embedder == self._embedder:
            width = 2 * self._dimensions
            owners = [owner for owner, blob in written.vectors for _ in range(len(blob) // width)]
            self._add_vectors(owners, b"".join(blob for _, blob in written.vectors), rows)
            self.upto = written.after

    def _follow(self, rows: MemoryRows) -> None:
        self._located = None
        self._fit(len(rows))
        # Vectors in the ANN index are read from the database by the ids of their rows.
        self._ids = rows.ids

    def _add_vectors(self, owners: Sequence[str], blob: bytes, rows: MemoryRows) -> None:
        """Add vectors of these owners, one part for each; parts of one owner are adjacent."""
        if not owners:
            return
        owner_rows = rows.rows(owners)
        existing = owner_rows >= 0
        if not existing.all():
            # Some are of records of other kinds, or of unreadable ones.
            parts = np.frombuffer(blob, np.uint8).reshape(len(owners), -1)
            owner_rows, blob = owner_rows[existing], parts[existing].tobytes()
            if not len(owner_rows):
                return
        # Not `np.diff` with an end of its own: that takes five times as long.
        is_first = np.concatenate(([True], owner_rows[1:] != owner_rows[:-1]))
        starts = np.flatnonzero(is_first)
        changed_rows = owner_rows[starts]
        counts = np.concatenate((starts[1:], [len(owner_rows)])) - starts
        text = self._matrix.append(blob, counts)
        self._entry[changed_rows] = np.arange(text, text + len(changed_rows))
        self._row_of.add(changed_rows)
        self._leave_ann(changed_rows)

    def drop(self, row: int) -> None:
        """Forget the vector of a deleted memory."""
        self._located = None
        if row < len(self._entry):
            self._entry[row] = -1
            # LanceDB keeps the bytes of deleted vectors, so the ANN index is made anew.
            self.wants_purge |= bool(self._in_ann[row])
            self._leave_ann(np.array([row]))

    def _leave_ann(self, rows: NDArray[np.int64]) -> None:
        leaving = rows[self._in_ann[rows]]
        if len(leaving):
            self._ann_rows[np.isin(self._ann_rows, leaving)] = -1
            self._in_ann[leaving] = False

    def _fit(self, count: int) -> None:
        self._entries.extend_to(count)
        self._far.extend_to(count)

    def count_missing(self, keep: NDArray[np.bool_]) -> int:
        """How many of these rows (N,) have no vector yet."""
        return self._locate(keep).lacking

    def _locate(self, keep: NDArray[np.bool_]) -> _Located:
        """Where the vectors of these rows are; cached, since queries often share a mask."""
        if self._located is None or self._located.keep is not keep:
            self._fit(len(keep))
            texts_of_rows = self._entry[: len(keep)]
            rows = np.flatnonzero(keep & (texts_of_rows >= 0))
            elsewhere = int((keep & self._in_ann[: len(keep)]).sum())
            missing = int(keep.sum()) - len(rows) - elsewhere
            texts = texts_of_rows[rows]
            every = np.array_equal(texts, np.arange(len(self._row_of)))
            self._located = _Located(keep, rows, texts, elsewhere, missing, every)
        return self._located

    # Answers.

    def waiting(self, vector: NDArray[np.float32]) -> AbstractContextManager[None]:
        """While a thread waits for its turn, another one's scan may take its vector along."""
        return self._scan.waiting(vector)

    def nearest(self, vector: NDArray[np.float32], keep: NDArray[np.bool_], limit: int) -> Nearest:
        """The `limit` rows of `keep` (N,) that are nearest to a unit vector."""
        located = self._locate(keep)
        memory_nearest = self._scan.find_nearest(vector, located.texts, limit, every=located.every)
        memory_nearest = replace(memory_nearest, rows=located.rows[memory_nearest.rows])
        if not located.far:
            return memory_nearest
        disk_nearest = self._from_ann(vector, keep, limit)
        all_cosines = np.concatenate((memory_nearest.cosines, disk_nearest.cosines))
        all_nearest = best_of(
            np.concatenate((memory_nearest.rows, disk_nearest.rows)), all_cosines, limit
        )
        return Nearest(all_nearest.rows, all_nearest.cosines, disk_nearest.exact)

    def having(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these rows have a vector."""
        has_vector: NDArray[np.bool_] = (self._entry[rows] >= 0) | self._in_ann[rows]
        return has_vector

    def cosines(self, vector: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each of these few rows, 0 without a vector."""
        cosines = np.zeros(len(rows))
        texts = self._entry[rows]
        in_memory = texts >= 0
        if in_memory.any():
            cosines[in_memory] = self._matrix.view().some(vector, texts[in_memory])
        on_disk = ~in_memory & self._in_ann[rows]
        if on_disk.any():
            cosines[on_disk] = self._read_back(vector, rows[on_disk])
        return cosines

    def closeness(self, rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of each of a few pairs of rows; NaN if either has no vector, or is -1."""
        closeness = np.full(len(rows), np.nan)
        texts, other_texts = self._entry[rows], self._entry[others]
        in_memory = (rows >= 0) & (texts >= 0) & (other_texts >= 0)
        if in_memory.any():
            view = self._matrix.view()
            closeness[in_memory] = view.pairs(texts[in_memory], other_texts[in_memory])
        on_disk = (rows >= 0) & ~in_memory & ((texts >= 0) | self._in_ann[rows])
        on_disk &= (other_texts >= 0) | self._in_ann[others]
        for row in sorted(set(rows[on_disk].tolist())):
            of_row = on_disk & (rows == row)
            closeness[of_row] = self.cosines(self.first_part(row), others[of_row])
        return closeness

    def first_part(self, row: int) -> NDArray[np.float32]:
        """The vector of a row that has one, of a long text that of its beginning."""
        vector: NDArray[np.float32]
        if (text := int(self._entry[row])) >= 0:
            vector = self._matrix.view().first_part(text)
        else:
            batches = self._vectors.data_of(self._embedder, [self._ids[row]])
            first_part = next(part for batch in batches for part in batch)
            vector = from_float16(first_part[1], self._dimensions)[0]
        return vector

    def _read_back(self, vector: NDArray[np.float32], rows: NDArray[np.int64]) -> Cosines:
        """The cosines of rows in the ANN index, from the database."""
        best_cosines: dict[str, float] = {}
        ids = (self._ids[row] for row in rows.tolist())
        for batch in self._vectors.data_of(self._embedder, ids):
            parts = from_float16(b"".join(blob for _, blob in batch), self._dimensions)
            for (owner, _), cosine in zip(batch, (parts @ vector).tolist(), strict=True):
                best_cosines[owner] = max(best_cosines.get(owner, cosine), cosine)
        return np.array(
            [best_cosines.get(self._ids[row], 0.0) for row in rows.tolist()], np.float64
        )

    def close_to(
        self,
        vectors: NDArray[np.float32],
        may: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
        closer: float,
        limit: int,
    ) -> list[list[tuple[int, float]]]:
        """For each unit vector, up to `limit` (row, cosine) of at least `closer`.

        `may` tells which of the given rows count: it is only called with close ones.
        """
        places, texts, cosines = self._scan.find_pairs(vectors, closer)
        rows = self._row_of.view()[texts]
        is_counted = rows >= 0
        is_counted[is_counted] = self._entry[rows[is_counted]] == texts[is_counted]
        is_counted[is_counted] = may(rows[is_counted])
        places, rows, cosines = places[is_counted], rows[is_counted], cosines[is_counted]
        order = np.lexsort((-cosines, places))
        ends = np.cumsum(np.bincount(places, minlength=len(vectors))).tolist()
        close_rows: list[dict[int, float]] = []
        for begin, end in zip([0, *ends], ends, strict=False):
            by_row: dict[int, float] = {}
            for best in order[begin:end]:
                # A text with several close parts is as close as the best of them.
                by_row.setdefault(int(rows[best]), float(cosines[best]))
                if len(by_row) == limit:
                    break
            close_rows.append(by_row)
        if len(self._ann_seqs):
            keep = may(np.arange(len(self._ids)))
            self._fit(len(keep))
            for at, vector in enumerate(vectors):
                disk_nearest = self._from_ann(vector, keep, limit)
                pairs = zip(disk_nearest.rows.tolist(), disk_nearest.cosines.tolist(), strict=True)
                close_rows[at].update((row, cosine) for row, cosine in pairs if cosine >= closer)
        return [sorted(by_row.items(), key=lambda pair: -pair[1])[:limit] for by_row in close_rows]

    def _from_ann(
        self, vector: NDArray[np.float32], keep: NDArray[np.bool_], limit: int
    ) -> Nearest:
        """Ask for more until enough of the results may be shown; else scan the database.

        If a filter leaves so few rows that reading them from the database is faster, that is done.
        """
        candidates = np.flatnonzero(keep & self._in_ann[: len(keep)])
        one_in = len(self._ann_seqs) / max(1, len(candidates))
        if len(candidates) <= max(FEW, ROWS_FOR_ONE * limit * (one_in - 1)):
            return best_of(candidates, self._read_back(vector, candidates), limit)
        needed_count = min(limit, len(candidates))
        ask_for = max(2 * limit, int(_MORE * limit * one_in))
        while True:
            keys, cosines, exact = self.ann.search(vector, ask_for)
            rows = self._rows_of(keys)
            is_kept = rows >= 0
            is_kept[is_kept] = keep[rows[is_kept]]
            best_rows = best_of(*best_part(rows[is_kept], cosines[is_kept]), limit)
            is_exhausted = len(keys) < ask_for
            if len(best_rows.rows) >= needed_count or (is_exhausted and exact):
                return Nearest(best_rows.rows, best_rows.cosines, exact)
            if is_exhausted or ask_for >= _MOST:
                return self._scan_truth(vector, keep, limit)
            ask_for *= 4

    def _scan_truth(
        self, vector: NDArray[np.float32], keep: NDArray[np.bool_], limit: int
    ) -> Nearest:
        all_rows, all_cosines = [], []
        for seqs, vectors in self._read(0, self.ann.meta.upto):
            rows = self._rows_of(seqs)
            is_kept = rows >= 0
            is_kept[is_kept] = keep[rows[is_kept]]
            all_rows.append(rows[is_kept])
            all_cosines.append((vectors[is_kept] @ vector).astype(np.float32))
        rows, cosines = np.concatenate(all_rows), np.concatenate(all_cosines)
        return best_of(*best_part(rows, cosines), limit)

    def _rows_of(self, seqs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows by the numbers of their vectors; -1 for deleted or replaced ones."""
        positions = np.minimum(np.searchsorted(self._ann_seqs, seqs), len(self._ann_seqs) - 1)
        return np.where(self._ann_seqs[positions] == seqs, self._ann_rows[positions], -1)

    # The ANN index.

    def write_ann(self, upto: int) -> None:
        """Write vectors up to a number of the database to disk. Only the files must be locked.

        Raises MissingExtra without LanceDB, and what LanceDB raises (ANN_ERRORS).
        """
        store = AnnStore(self.ann.folder, self._embedder, self._dimensions)
        since = store.open().upto
        if upto > since:
            store.extend(self._read(since, upto), upto)

    def purge(self, rows: MemoryRows) -> None:
        """Remove an ANN index with vectors of deleted memories; memory answers until the next."""
        if self.wants_purge:
            self.lose_ann(rows, "")

    def lose_ann(self, rows: MemoryRows, reason: str) -> None:
        """Discard an unreadable ANN index, and answer from memory until it is written again."""
        self.ann.discard()
        self.load(rows)
        self.lost = reason

    def _read(self, since: int, upto: int) -> Iterator[Batch]:
        while stored_vectors := self._vectors.data_between(self._embedder, since, upto, STEP):
            numbers, blobs = zip(*stored_vectors, strict=True)
            since = numbers[-1]
            yield np.array(numbers, np.int64), from_float16(b"".join(blobs), self._dimensions)
