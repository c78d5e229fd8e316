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
from anaphora.index.vectors.matrix import Matrix, MatrixView
from anaphora.index.vectors.quantized import Projected, Quantized

BIG: Final = 8_192
"""From so many parts on a quantized form saves more than it costs to make."""

NEWER: Final = 2_048
"""Parts that the quantized form may lack before it takes them in: they are scanned as they are."""

FIRST: Final = 1
"""Questions before a quantized form is made: a process that asks one ends before it is of use."""

MANY: Final = 50_000
"""From so many parts on single questions for what is close ask a projected form: of fewer the whole
quantized one is read in a millisecond, and needs nothing made in the background."""

PATIENCE: Final = 8
"""Single questions for what is close before a projected form is made for them."""

FRESH: Final = 256
"""Parts that the projected form may lack before it takes them in: they are scanned as they are."""

_STEP: Final = 4_096
_LAST_DIGIT: Final = 1e-5

Floats = NDArray[np.float32]


class Scan:
    """Answers from one matrix as it grows. One thread at a time asks; its background is its own."""

    def __init__(self, matrix: Matrix, *, background: bool = True) -> None:
        self._matrix = matrix
        self._background = background
        self._worker = Background("anaphora-memory-scan")
        self._quantized: Quantized | None = None
        self._projected: Projected | None = None
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
        found, error = self._found(vector)
        if not error:
            return slice(None)
        near = found if every else found[texts]
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
            cosines = np.einsum("ij,ij->i", vectors[queries], view.parts[parts])
            texts = np.searchsorted(view.starts, parts, side="right") - 1
            good = np.flatnonzero(cosines >= closer)
            some = (queries[good], texts[good], cosines[good])
            yield from zip(*(column.tolist() for column in some), strict=True)

    def _could_be(self, vector: Floats, closer: float, view: MatrixView) -> NDArray[np.intp]:
        """The texts that could be so close to one vector."""
        parts = self._parts_near(vector, closer, view) if len(view.parts) >= MANY else None
        if parts is None:
            found, error = self._found(vector)
            return np.flatnonzero(found >= closer - error)
        return np.unique(np.searchsorted(view.starts, parts, side="right") - 1)

    def _parts_near(
        self, vector: Floats, closer: float, view: MatrixView
    ) -> NDArray[np.int64] | None:
        """The parts that could be so close, by the projected form; None while there is none."""
        self._asked += 1
        self._keep_up(view)
        projected = self._projected
        if projected is None or len(view.parts) - len(projected) > NEWER:
            return None
        # Looked at once: the background may add to it meanwhile.
        known = len(projected)
        found = projected.could_be(vector, closer, known)
        if found is None:
            return None
        # Another sum than that of the exact scan, which decides: it differs in the last digit.
        newer = np.einsum("ij,j->i", view.parts[known:], vector)
        return np.concatenate((found, known + np.flatnonzero(newer >= closer - _LAST_DIGIT)))

    def _pairs(
        self, vectors: Floats, view: MatrixView, closer: float
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Places of all pairs that could be so close: (among `vectors`, among the parts)."""
        if len(view.parts) >= BIG:
            # Whoever asks begins the background, so none begins while this is waited for.
            self._worker.wait()
            projected = self._project(view, len(view.parts))
            yield from projected.pairs(vectors, view.parts, closer)
        elif len(view.parts):
            # Few need no bound; their rounding may differ from below.
            near = (vectors @ view.parts.T).ravel() >= closer - 1e-4
            yield np.divmod(np.flatnonzero(near), len(view.parts))

    def _fits(self, vector: Floats, view: MatrixView) -> bool:
        return (
            self._last is not None and self._last[0] is vector and self._last[1] == len(view.parts)
        )

    def _found(self, vector: Floats) -> tuple[Floats, float]:
        """Cosines of all texts, and how far they can be from the exact ones (0: these are)."""
        view = self._matrix.view()
        if self._last is None or not self._fits(vector, view):
            self._questions += 1
            self._keep_up(view)
            quantized = self._quantized
            if quantized is None:
                found, error = view.best(vector), 0.0
            else:
                near, error = _approximate(quantized, vector, view)
                found = view.best_parts(near)
            self._last = (vector, len(view.parts), found, error)
        return self._last[2], self._last[3]

    # What is made in the background.

    def _keep_up(self, view: MatrixView) -> None:
        if not self._due(view):
            return
        if self._background:
            self._worker.begin(lambda: self._add_newer(view))
        else:
            self._add_newer(view)

    def _due(self, view: MatrixView) -> bool:
        count = len(view.parts)
        if count < BIG:
            return False
        if self._quantized is None:
            return self._questions > FIRST
        if count - len(self._quantized) > NEWER:
            return True
        projected = 0 if self._projected is None else len(self._projected)
        return self._asked > PATIENCE and count - projected > FRESH

    def _add_newer(self, view: MatrixView) -> None:
        """Take in what is newer, some of it at a time: whoever closes does not wait for long."""
        count = len(view.parts)
        quantized = self._quantized or Quantized()
        while quantized.take_some(view.parts):
            if self._worker.stopping.is_set():
                return
        self._quantized = quantized
        # By now all has been read that was there at the opening, and its pieces were freed.
        give_back_memory()
        if self._asked > PATIENCE:
            for end in range(0 if self._projected is None else self._projected.taken, count, _STEP):
                if self._worker.stopping.is_set():
                    return
                self._project(view, min(count, end + _STEP))
            self._project(view, count).encode()

    def _project(self, view: MatrixView, upto: int) -> Projected:
        if self._projected is None:
            self._projected = Projected(view.parts)
        self._projected.extend(view.parts, upto)
        return self._projected


def _approximate(quantized: Quantized, vector: Floats, view: MatrixView) -> tuple[Floats, float]:
    near, error = quantized.approximate(vector)
    # The quantized form may have grown since: it says itself how many it looked at.
    newer = view.parts[len(near) :]
    if not len(newer):
        return near[: len(view.parts)], error
    return np.concatenate((near, np.einsum("ij,j->i", newer, vector))), error
