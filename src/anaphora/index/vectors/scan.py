"""The exact scan of vectors in memory, which reads no more of them than necessary.

Cosines are bit for bit those of a scan of all vectors. For a large matrix, a quantized form first
selects the texts that could be among the best; only their cosines are computed. The quantized form
is made in the background; until it is ready, everything is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import Background
from anaphora.index.vectors.matrix import Matrix, MatrixView, products
from anaphora.index.vectors.quantized import SHORT_BLOCKS, Projected, Quantized
from anaphora.system.heap import give_back_memory

BIG: Final = 8_192
"""From so many parts a quantized form saves more than it costs to make."""

NEWER: Final = 2_048
"""Parts that the quantized form may lack before they are added: those are scanned exactly."""

FIRST: Final = 1
"""Queries before a quantized form is made: a process with a single query ends before it helps."""

SEVERAL: Final = 2_048
"""From so many parts a projected form selects the close ones: fewer are multiplied out."""

ENOUGH: Final = 1_024
"""From so many parts it is made when many vectors are compared at once."""

PATIENCE: Final = 1
"""Single queries for close texts before the projected form is made: a process that writes one
memory ends before it helps."""

_STEP: Final = 512
_LAST_DIGIT: Final = 1e-5

Floats = NDArray[np.float32]


class Scan:
    """Answers from one matrix as it grows. One thread at a time; it has its own background."""

    def __init__(self, matrix: Matrix, *, background: bool = True) -> None:
        self._matrix = matrix
        self._background = background
        self._worker = Background("anaphora-memory-scan")
        self._quantized: Quantized | None = None
        self._projected = Projected()
        self._questions = 0
        self._single_queries = 0
        # One query asks for the same more than once: (vector, parts, texts' cosines, error).
        self._last: tuple[Floats, int, Floats, float] | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the background to end; False if it takes longer than `timeout` seconds."""
        return self._worker.wait(timeout)

    def close(self) -> None:
        """Begin no more background work, and wait for the running one, which ends soon.

        A process that exits while a library creates a session in a thread would be aborted.
        """
        self._worker.stop()

    def find_leading(
        self, vector: Floats, texts: NDArray[np.int64], limit: int, *, every: bool = False
    ) -> NDArray[np.intp] | slice:
        """Which of `texts` could be among the best `limit` of them: indices, or a slice of all.

        `every`: `texts` are all texts of the matrix, in order.
        """
        if not 0 < limit < len(texts):
            return slice(None)
        view = self._matrix.view()
        if not self._fits(vector, view):
            self._questions += 1
            self._keep_up(view)
        cosines, error = self._scan_texts(vector)
        if not error:
            return slice(None)
        near_cosines = cosines if every else cosines[texts]
        cut_index = len(near_cosines) - limit
        # A text among the best is at least as near as number `limit`, less the error of both.
        least_cosine = np.partition(near_cosines, cut_index)[cut_index] - 2.0 * error
        return np.flatnonzero(near_cosines >= least_cosine)

    def exact(self, vector: Floats, texts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of the best part of each of `texts`."""
        view = self._matrix.view()
        last_scan = self._last
        if last_scan is not None and self._fits(vector, view) and not last_scan[3]:
            return last_scan[2][texts].astype(np.float64)
        if len(view.parts) < BIG and len(texts) > len(view.starts) // 8:
            return self._scan_texts(vector)[0][texts].astype(np.float64)
        return view.some(vector, texts).astype(np.float64)

    def find_pairs(self, vectors: Floats, closer: float) -> Iterator[tuple[int, int, float]]:
        """(vector, text, cosine) of every pair that is at least so close, part by part."""
        view = self._matrix.view()
        if len(vectors) == 1:
            texts = self._find_close(vectors[0], closer, view)
            best_cosines = self.exact(vectors[0], texts)
            for text, cosine in zip(texts.tolist(), best_cosines.tolist(), strict=True):
                if cosine >= closer:
                    yield 0, text, cosine
            return
        unpacked_count = len(view.parts) - len(self._projected)
        if len(view.parts) >= ENOUGH and unpacked_count >= SHORT_BLOCKS[-1]:
            # Only the thread that queries begins the background, so none begins during this wait.
            self._worker.wait()
            while self._projected.add_some(view.parts):
                pass
        for queries, parts in self._projected.pairs(vectors, view.parts, closer):
            # In steps: the vectors gathered for the product stay in the cache.
            for start in range(0, len(parts), _STEP):
                query_rows, rows = queries[start : start + _STEP], parts[start : start + _STEP]
                cosines = np.einsum("ij,ij->i", vectors[query_rows], view.parts[rows])
                close_indexes = np.flatnonzero(cosines >= closer)
                texts = np.searchsorted(view.starts, rows[close_indexes], side="right") - 1
                columns = (query_rows[close_indexes], texts, cosines[close_indexes])
                yield from zip(*(column.tolist() for column in columns), strict=True)

    def _find_close(self, vector: Floats, closer: float, view: MatrixView) -> NDArray[np.intp]:
        """The texts that could be so close to one vector."""
        parts = self._parts_near(vector, closer, view) if len(view.parts) >= SEVERAL else None
        if parts is None:
            cosines, error = self._scan_texts(vector)
            return np.flatnonzero(cosines >= closer - error)
        return np.unique(np.searchsorted(view.starts, parts, side="right") - 1)

    def _parts_near(
        self, vector: Floats, closer: float, view: MatrixView
    ) -> NDArray[np.int64] | None:
        """The parts that could be so close, by the projected form; None if that does not help."""
        self._single_queries += 1
        self._keep_up(view)
        unpacked_count = len(view.parts) - len(self._projected)
        if unpacked_count > NEWER and self._quantized is not None:
            # While the projected form is made, the quantized one reads less.
            return None
        candidates = self._projected.find_near(vector, closer)
        if candidates is None:
            return None
        # The exact scan decides: this sum differs from its sum in the last digit.
        near_parts, packed_count = candidates
        newer = products(view.parts[packed_count:], vector)
        newer_near = packed_count + np.flatnonzero(newer >= closer - _LAST_DIGIT)
        return np.concatenate((near_parts, newer_near))

    def _fits(self, vector: Floats, view: MatrixView) -> bool:
        return (
            self._last is not None and self._last[0] is vector and self._last[1] == len(view.parts)
        )

    def _scan_texts(self, vector: Floats) -> tuple[Floats, float]:
        """Cosines of all texts, and how far they can be from the exact ones (0: these are)."""
        view = self._matrix.view()
        if self._last is None or not self._fits(vector, view):
            quantized_form = self._quantized
            if quantized_form is None:
                cosines, error = view.best(vector), 0.0
            else:
                part_cosines, error = quantized_form.approximate(vector)
                # The quantized form may have grown since the view, or lack its newest parts.
                part_cosines, newer = (
                    part_cosines[: len(view.parts)],
                    view.parts[len(part_cosines) :],
                )
                if len(newer):
                    part_cosines = np.concatenate(
                        (part_cosines, np.einsum("ij,j->i", newer, vector))
                    )
                cosines = view.best_parts(part_cosines)
            self._last = (vector, len(view.parts), cosines, error)
        return self._last[2], self._last[3]

    # Background work.

    def _keep_up(self, view: MatrixView) -> None:
        if not (self._quantized_due(view) or self._projected_due(view)):
            return
        if self._background:
            self._worker.begin(lambda: self._add_newer(view))
        else:
            self._add_newer(view)

    def _quantized_due(self, view: MatrixView) -> bool:
        packed_count = 0 if self._quantized is None else len(self._quantized)
        worthwhile = packed_count or (self._questions > FIRST and len(view.parts) >= BIG)
        return bool(worthwhile) and len(view.parts) - packed_count > (NEWER if packed_count else 0)

    def _projected_due(self, view: MatrixView) -> bool:
        worthwhile = self._single_queries > PATIENCE and len(view.parts) >= SEVERAL
        return worthwhile and len(view.parts) - len(self._projected) >= SHORT_BLOCKS[-1]

    def _add_newer(self, view: MatrixView) -> None:
        """Add newer parts, block by block, so that `close` does not wait for long."""
        # The projected form is made sooner and comes first; each finished block already helps.
        has_more = self._projected_due(view)
        while has_more and not self._worker.stopping.is_set():
            has_more = self._projected.add_some(view.parts)
        quantized_form = self._quantized or Quantized()
        has_more = self._quantized_due(view)
        while has_more and not self._worker.stopping.is_set():
            has_more = quantized_form.add_some(view.parts)
            if not has_more:
                self._quantized = quantized_form
        # By now everything on disk at the opening has been read, and its buffers were freed.
        give_back_memory()
