"""The exact scan of vectors in memory, which reads no more of them than it must.

In: a matrix, unit queries. Out: cosines as an exact scan of all would give them, to the bit. Of a
large matrix an outline is asked first: what it leaves could be among the best, and is computed. It
never approximates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.outline import Outline, Rough
from anaphora.index.memories.sketch import Sketch
from anaphora.index.nearest import Matrix, MatrixView

__all__ = ["BIG", "Scan"]

BIG: Final = 8_192
"""From so many parts on an outline saves more than it costs to make."""

NEWER: Final = 2_048
"""Parts that the outline may lack: they are scanned as they are."""

PATIENCE: Final = 8
"""Single questions for what is close that the outline answers before a sketch is begun for them."""

STEP: Final = 8_192
"""Parts that the sketch grows by with one of them: 20 ms."""

FRESH: Final = 256
"""Parts that the sketch may lack: they are scanned as they are."""

_LAST_DIGIT: Final = 1e-5

Floats = NDArray[np.float32]


class Scan:
    """Answers from one matrix as it grows. One thread at a time."""

    def __init__(self, matrix: Matrix, dimensions: int) -> None:
        self._matrix = matrix
        self._outline = Outline(dimensions)
        self._sketch = Sketch()
        self._asked = 0
        # One question asks more than once for the same: (vector, parts, texts' cosines, error).
        self._last: tuple[Floats, int, Floats, float] | None = None

    def warm(self) -> None:
        """Make the outline now rather than with the first question."""
        view = self._matrix.view()
        if len(view.parts) >= BIG:
            self._outline.extend(view.parts)

    def could_lead(
        self, vector: Floats, texts: NDArray[np.int64], limit: int
    ) -> NDArray[np.intp] | slice:
        """Which of `texts` could be among the best `limit` of them: places, or a slice of all."""
        if not 0 < limit < len(texts):
            return slice(None)
        found, error = self._found(vector)
        if not error:
            return slice(None)
        rough = found[texts]
        cut = len(rough) - limit
        # Whoever is among the best is at least as near as the last of `limit`, less its error.
        least = np.partition(rough, cut)[cut] - 2.0 * error
        return np.flatnonzero(rough >= least)

    def exact(self, vector: Floats, texts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosine of the best part of each of `texts`."""
        view = self._matrix.view()
        if self._last is not None and self._fits(vector, view) and not self._last[3]:
            return self._last[2][texts].astype(np.float64)
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
        parts = self._parts_near(vector, closer, view) if len(view.parts) >= BIG else None
        if parts is None:
            found, error = self._found(vector)
            return np.flatnonzero(found >= closer - error)
        return np.unique(np.searchsorted(view.starts, parts, side="right") - 1)

    def _parts_near(
        self, vector: Floats, closer: float, view: MatrixView
    ) -> NDArray[np.int64] | None:
        """The parts that could be so close, by the sketch; None while the outline is quicker."""
        self._asked += 1
        if self._asked > PATIENCE and len(view.parts) - len(self._sketch) > FRESH:
            # Some of it with each question: all at once would keep one of them waiting.
            self._sketch.extend(view.parts, STEP)
        known = len(self._sketch)
        if len(view.parts) - known > NEWER:
            return None
        found = self._sketch.could_be(vector, closer)
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
            self._sketch.extend(view.parts)
            yield from self._sketch.pairs(vectors, view.parts, closer)
        elif len(view.parts):
            # The bound of the sketch is not needed for few; their rounding may differ from below.
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
            if len(view.parts) < BIG:
                found, error = view.best(vector), 0.0
            else:
                rough = self._rough(vector, view)
                found, error = view.best_parts(rough.cosines), rough.error
            self._last = (vector, len(view.parts), found, error)
        return self._last[2], self._last[3]

    def _rough(self, vector: Floats, view: MatrixView) -> Rough:
        if len(view.parts) - len(self._outline) > NEWER:
            self._outline.extend(view.parts)
        rough = self._outline.rough(vector)
        newer = view.parts[len(self._outline) :]
        if not len(newer):
            return rough
        exact = np.einsum("ij,j->i", newer, vector)
        return Rough(np.concatenate((rough.cosines, exact)), rough.error)
