"""The exact scan of vectors in memory, which reads no more of them than it must.

Cosines are those of an exact scan of all, to the bit. Of a large matrix its quantized form is asked
first: what it leaves could be among the best, and is computed. That form is made in the background;
until it is there, everything is scanned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.heap import give_back_memory
from anaphora.index.maintenance import Background
from anaphora.index.vectors.matrix import Matrix, MatrixView, products
from anaphora.index.vectors.quantized import SHORT_BLOCKS, Projected, Quantized

BIG: Final = 8_192
"""From so many parts on a quantized form saves more than it costs to make."""

NEWER: Final = 2_048
"""Parts that the quantized form may lack before it takes them in: they are scanned as they are."""

FIRST: Final = 1
"""Questions before a quantized form is made: a process that asks one ends before it is of use."""

SEVERAL: Final = 2_048
"""From so many parts on a projected form is asked for what is close: fewer are multiplied out."""

ENOUGH: Final = 1_024
"""From so many on it is made for many vectors at once."""

PATIENCE: Final = 1
"""Single questions for what is close before the projected form is made: a process that writes one
memory ends before it is of use."""

_STEP: Final = 512
_LAST_DIGIT: Final = 1e-5

Floats = NDArray[np.float32]


class Scan:
    """Answers from one matrix as it grows. One thread at a time asks; its background is its own."""

    def __init__(self, matrix: Matrix, *, background: bool = True) -> None:
        self._matrix = matrix
        self._background = background
        self._worker = Background("anaphora-memory-scan")
        self._quantized: Quantized | None = None
        self._projected = Projected()
        self._questions = 0
        self._asked = 0
        # One question asks more than once for the same: (vector, parts, texts' cosines, error).
        self._last: tuple[Floats, int, Floats, float] | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the background to end; False when `timeout` seconds did not suffice."""
        return self._worker.wait(timeout)

    def close(self) -> None:
        """Begin no more in the background, and wait for what is under way, which ends soon.

        A process that ends while a library makes a session for it would be aborted.
        """
        self._worker.stop()

    def could_lead(
        self, vector: Floats, texts: NDArray[np.int64], limit: int, *, every: bool = False
    ) -> NDArray[np.intp] | slice:
        """Which of `texts` could be among the best `limit` of them: places, or a slice of all.

        `every`: these are all that there are, in order.
        """
        if not 0 < limit < len(texts):
            return slice(None)
        view = self._matrix.view()
        if not self._fits(vector, view):
            self._questions += 1
            self._keep_up(view)
        cosines, error = self._found(vector)
        if not error:
            return slice(None)
        near = cosines if every else cosines[texts]
        cut = len(near) - limit
        # Whoever is among the best is at least as near as the last of `limit`, less its error.
        least = np.partition(near, cut)[cut] - 2.0 * error
        return np.flatnonzero(near >= least)

    def exact(self, vector: Floats, texts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of the best part of each of `texts`."""
        view = self._matrix.view()
        last = self._last
        if last is not None and self._fits(vector, view) and not last[3]:
            return last[2][texts].astype(np.float64)
        if len(view.parts) < BIG and len(texts) > len(view.starts) // 8:
            return self._found(vector)[0][texts].astype(np.float64)
        return view.some(vector, texts).astype(np.float64)

    def at_least(self, vectors: Floats, closer: float) -> Iterator[tuple[int, int, float]]:
        """(vector, text, cosine) of every pair that is at least so close; one part at a time."""
        view = self._matrix.view()
        if len(vectors) == 1:
            texts = self._could_be(vectors[0], closer, view)
            best = self.exact(vectors[0], texts)
            for text, cosine in zip(texts.tolist(), best.tolist(), strict=True):
                if cosine >= closer:
                    yield 0, text, cosine
            return
        for queries, parts in self._pairs(vectors, view, closer):
            # Some at a time: what is picked from memory for the product stays near to it.
            for start in range(0, len(parts), _STEP):
                query_rows, rows = queries[start : start + _STEP], parts[start : start + _STEP]
                cosines = np.einsum("ij,ij->i", vectors[query_rows], view.parts[rows])
                close = np.flatnonzero(cosines >= closer)
                texts = np.searchsorted(view.starts, rows[close], side="right") - 1
                columns = (query_rows[close], texts, cosines[close])
                yield from zip(*(column.tolist() for column in columns), strict=True)

    def _could_be(self, vector: Floats, closer: float, view: MatrixView) -> NDArray[np.intp]:
        """The texts that could be so close to one vector."""
        parts = self._parts_near(vector, closer, view) if len(view.parts) >= SEVERAL else None
        if parts is None:
            cosines, error = self._found(vector)
            return np.flatnonzero(cosines >= closer - error)
        return np.unique(np.searchsorted(view.starts, parts, side="right") - 1)

    def _parts_near(
        self, vector: Floats, closer: float, view: MatrixView
    ) -> NDArray[np.int64] | None:
        """The parts that could be so close, by the projected form; None where that is no help."""
        self._asked += 1
        self._keep_up(view)
        unpacked = len(view.parts) - len(self._projected)
        if unpacked > NEWER and self._quantized is not None:
            # While the one is made, the other reads less.
            return None
        candidates = self._projected.could_be(vector, closer)
        if candidates is None:
            return None
        # Another sum than that of the exact scan, which decides: it differs in the last digit.
        near, packed = candidates
        newer = products(view.parts[packed:], vector)
        newer_near = packed + np.flatnonzero(newer >= closer - _LAST_DIGIT)
        return np.concatenate((near, newer_near))

    def _pairs(
        self, vectors: Floats, view: MatrixView, closer: float
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Places of all pairs that could be so close: (among `vectors`, among the parts)."""
        unpacked = len(view.parts) - len(self._projected)
        if len(view.parts) >= ENOUGH and unpacked >= SHORT_BLOCKS[-1]:
            # Whoever asks begins the background, so none begins while this is waited for.
            self._worker.wait()
            while self._projected.take_some(view.parts):
                pass
        yield from self._projected.pairs(vectors, view.parts, closer)

    def _fits(self, vector: Floats, view: MatrixView) -> bool:
        return (
            self._last is not None and self._last[0] is vector and self._last[1] == len(view.parts)
        )

    def _found(self, vector: Floats) -> tuple[Floats, float]:
        """Cosines of all texts, and how far they can be from the exact ones (0: these are)."""
        view = self._matrix.view()
        if self._last is None or not self._fits(vector, view):
            quantized = self._quantized
            if quantized is None:
                cosines, error = view.best(vector), 0.0
            else:
                near, error = _approximate(quantized, vector, view)
                cosines = view.best_parts(near)
            self._last = (vector, len(view.parts), cosines, error)
        return self._last[2], self._last[3]

    # What is made in the background.

    def _keep_up(self, view: MatrixView) -> None:
        if not (self._quantized_due(view) or self._projected_due(view)):
            return
        if self._background:
            self._worker.begin(lambda: self._add_newer(view))
        else:
            self._add_newer(view)

    def _quantized_due(self, view: MatrixView) -> bool:
        packed = 0 if self._quantized is None else len(self._quantized)
        worthwhile = packed or (self._questions > FIRST and len(view.parts) >= BIG)
        return bool(worthwhile) and len(view.parts) - packed > (NEWER if packed else 0)

    def _projected_due(self, view: MatrixView) -> bool:
        worthwhile = self._asked > PATIENCE and len(view.parts) >= SEVERAL
        return worthwhile and len(view.parts) - len(self._projected) >= SHORT_BLOCKS[-1]

    def _add_newer(self, view: MatrixView) -> None:
        """Take in what is newer, some of it at a time: whoever closes does not wait for long."""
        # The one that is made sooner first; each of its blocks is of use as soon as it is there.
        more = self._projected_due(view)
        while more and not self._worker.stopping.is_set():
            more = self._projected.take_some(view.parts)
        quantized = self._quantized or Quantized()
        more = self._quantized_due(view)
        while more and not self._worker.stopping.is_set():
            more = quantized.take_some(view.parts)
            if not more:
                self._quantized = quantized
        # By now all has been read that was there at the opening, and its pieces were freed.
        give_back_memory()


def _approximate(quantized: Quantized, vector: Floats, view: MatrixView) -> tuple[Floats, float]:
    near, error = quantized.approximate(vector)
    # The quantized form may have grown since: it says itself how many it looked at.
    newer = view.parts[len(near) :]
    if not len(newer):
        return near[: len(view.parts)], error
    return np.concatenate((near, np.einsum("ij,j->i", newer, vector))), error
