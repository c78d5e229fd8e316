"""The exact scan of vectors in memory, which reads no more of them than necessary.

Cosines are bit for bit those of a scan of all vectors. Of a large matrix each number is also stored
as a byte: from a quarter of the memory come an approximate cosine of every part, and how far it can
be from the exact one. Exact ones are computed for the parts that could be among the best.

The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.rows import GrowingColumn
from anaphora.index.vectors.matrix import Matrix, MatrixView, Nearest, best_of, products

BIG: Final = 16_384
"""From so many parts their codes save more than they cost."""

STEP: Final = 8_192
"""Parts that get codes in one query, in 5 ms; those without are multiplied out."""

FEW: Final = 1_024
"""So many texts are gathered and multiplied out."""

_MOST: Final = 127
_LEAST_SCALE: Final = np.float32(1e-12)
# The most that float32 arithmetic around the integers can add.
_ROUNDING: Final = 1e-5

Floats = NDArray[np.float32]


@cache
def _kernels() -> Any | None:
    """The library with the integer product; without it (no wheel) all parts are multiplied out."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong


class Scan:
    """Answers from one matrix as it grows. One thread at a time."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._codes = GrowingColumn(np.int8, width=matrix.dimensions)
        self._scales = GrowingColumn(np.float32)
        # The greatest distance of decoded codes from their parts, and their greatest length.
        self._apart = self._longest = 0.0

    def find_nearest(
        self, vector: Floats, texts: NDArray[np.int64], limit: int, *, every: bool = False
    ) -> Nearest:
        """The best `limit` of `texts`: its rows are indices in `texts`.

        `every`: `texts` are all texts of the matrix, in order.
        """
        view, rows = self._matrix.view(), np.arange(len(texts))
        if len(texts) > FEW and 0 < limit < len(texts):
            part_cosines, error = self._estimate(vector, view)
            cosines = view.best_parts(part_cosines)
            cosines = cosines if every else cosines[texts]
            if not error:
                return best_of(rows, cosines.astype(np.float64), limit)
            cut_index = len(texts) - limit
            # A text among the best is at least as near as number `limit`, less the error of both.
            least_cosine = np.partition(cosines, cut_index)[cut_index] - 2.0 * error
            rows = np.flatnonzero(cosines >= least_cosine)
        return best_of(rows, view.some(vector, texts[rows]).astype(np.float64), limit)

    def find_pairs(self, vectors: Floats, closer: float) -> Iterator[tuple[int, int, float]]:
        """(vector, text, cosine) of every pair that is at least so close, part by part."""
        view = self._matrix.view()
        for at, vector in enumerate(vectors):
            cosines, error = self._estimate(vector, view)
            parts = np.flatnonzero(cosines >= closer - error)
            cosines = products(view.parts[parts], vector) if error else cosines[parts]
            is_close = cosines >= closer
            texts = np.searchsorted(view.starts, parts[is_close], side="right") - 1
            yield from zip(repeat(at), texts.tolist(), cosines[is_close].tolist())

    def _estimate(self, vector: Floats, view: MatrixView) -> tuple[Floats, float]:
        """The cosine of each part, and how far these can be from the exact ones (0: these are)."""
        self._code_some(view.parts)
        if not len(self._codes):
            return products(view.parts, vector), 0.0
        (code,), (scale,), (apart,), _ = _encode(vector[None])
        kernels: Any = _kernels()
        sums = kernels.cdist(code[None], self._codes.view(), metric="dot", out_dtype="float32")
        cosines = np.asarray(sums)[0] * self._scales.view()
        cosines *= scale
        newer = products(view.parts[len(cosines) :], vector)
        error = self._apart * float(np.linalg.norm(vector)) + self._longest * float(apart)
        return np.concatenate((cosines, newer)), error + _ROUNDING

    def _code_some(self, parts: Floats) -> None:
        """Give codes to some of the parts that have none: one query does not wait for all."""
        newer = parts[len(self._codes) :][:STEP]
        if len(parts) < BIG or not len(newer) or _kernels() is None:
            return
        codes, scales, apart, lengths = _encode(newer)
        self._codes.reserve(len(parts))
        self._codes.add(codes)
        self._scales.add(scales)
        self._apart = max(self._apart, float(apart.max()))
        self._longest = max(self._longest, float(lengths.max()))


def _encode(rows: Floats) -> tuple[NDArray[np.int8], Floats, Floats, Floats]:
    """Codes of rows (n, d), the value (n,) of a code of 1 in each, and of each decoded row the
    distance (n,) from the row and the length (n,)."""
    scales = np.maximum(np.abs(rows).max(axis=1), _LEAST_SCALE) / np.float32(_MOST)
    codes = np.rint(rows / scales[:, None])
    decoded = codes * scales[:, None]
    return codes.astype(np.int8), scales, _measure(rows - decoded), _measure(decoded)


def _measure(rows: Floats) -> Floats:
    """The length of each row."""
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths
