"""The exact scan of vectors in memory, which reads no more of them than necessary.

Cosines are bit for bit those of a scan of all vectors. Of a large matrix each number is also stored
as a byte: from half of the memory come an approximate cosine of every part, and how far it can
be from the exact one. Exact ones are computed for the parts that could be among the best.

The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.rows import GrowingColumn
from anaphora.index.vectors.matrix import (
    BLOCK,
    Floats,
    Matrix,
    Nearest,
    Parts,
    best_of,
    kernels,
    products,
    widen,
)

WORTH: Final = 4_096
"""From so many products (of parts and vectors) codes save more than they cost."""

STEP: Final = 4_096
"""Parts that get codes in one query, in 1.5 ms; those without are multiplied out."""

FEW: Final = 1_024
"""So many texts are gathered and multiplied out."""

TOGETHER: Final = 8
"""So many questions are scanned at once: at 100,000 parts each costs 0.4 of a single one."""

_SUMS: Final = 1 << 20
_PAIRS: Final = 512
_GROUPS: Final = 16
_MOST: Final = 127
_LEAST_SCALE: Final = np.float32(1e-12)
# The most that float32 arithmetic around the integers can add.
_ROUNDING: Final = 1e-5


@dataclass(slots=True, eq=False)
class _WaitingVector:
    """A vector, and about its cosines with all parts once they are known; `error` as they have."""

    vector: Floats
    cosines: Floats | None = None
    error: float = 0.0


class Scan:
    """Answers from one matrix as it grows. One thread at a time, but for `waiting`."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._codes = GrowingColumn(np.int8, width=matrix.dimensions)
        self._scales = GrowingColumn(np.float32)
        # The greatest distance of decoded codes from their parts, and their greatest length.
        self._apart = self._longest = 0.0
        self._waiting: dict[int, _WaitingVector] = {}

    @contextmanager
    def waiting(self, vector: Floats) -> Iterator[None]:
        """While a thread waits for its turn, the scan of another one may take its vector along."""
        self._waiting[id(vector)] = _WaitingVector(vector)
        try:
            yield
        finally:
            # Threads that ask the same have one vector.
            self._waiting.pop(id(vector), None)

    def find_nearest(
        self, vector: Floats, texts: NDArray[np.int64], limit: int, *, every: bool = False
    ) -> Nearest:
        """The best `limit` of `texts`: its rows are indices in `texts`.

        `every`: `texts` are all texts of the matrix, in order.
        """
        view, rows = self._matrix.view(), np.arange(len(texts))
        if len(texts) > FEW and 0 < limit < len(texts):
            similarities, error = self._estimate_one(vector, view.parts)
            cosines = view.best_parts(similarities)
            cosines = cosines if every else cosines[texts]
            if not error:
                return best_of(rows, cosines.astype(np.float64), limit)
            # The best of each of many groups: number `limit` of all is at least as near as theirs,
            # which are found in a tenth of the time.
            groups = min(len(texts), _GROUPS * limit)
            tops = cosines[: len(texts) // groups * groups].reshape(-1, groups).max(axis=0)
            # A text among the best is at least as near as that, less the error of both.
            least_cosine = np.partition(tops, -limit)[-limit] - 2.0 * error
            rows = np.flatnonzero(cosines >= least_cosine)
        return best_of(rows, view.some(vector, texts[rows]).astype(np.float64), limit)

    def find_pairs(
        self, vectors: Floats, closer: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """The vector, the text and the cosine of every pair that is at least so close, part by
        part."""
        view, start = self._matrix.view(), 0
        pairs = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
        for cosines, errors in self._estimate(vectors, view.parts):
            places = np.flatnonzero(cosines >= closer - errors)
            # In steps: the vectors gathered for the product stay in the cache.
            for step in range(0, len(places), _PAIRS):
                rows, at = np.divmod(places[step : step + _PAIRS], len(vectors))
                exact_cosines = products(widen(view.parts[start + rows]), vectors[at])
                is_close = exact_cosines >= closer
                texts = np.searchsorted(view.starts, start + rows[is_close], side="right") - 1
                pairs.append((at[is_close], texts, exact_cosines[is_close]))
            start += len(cosines)
        at, texts, exact_cosines = map(np.concatenate, zip(*pairs, strict=True))
        return at, texts, exact_cosines

    def _estimate_one(self, vector: Floats, parts: Parts) -> tuple[Floats, float]:
        """As `_estimate`, for one vector, by one product with those that wait."""
        leader = self._waiting.get(id(vector)) or _WaitingVector(vector)
        if leader.cosines is None or len(leader.cosines) != len(parts):
            # Other threads come and go meanwhile: a list of them is made in one step.
            unscanned = [
                member
                for member in list(self._waiting.values())
                if member is not leader and member.cosines is None
            ]
            group = [leader, *unscanned[: TOGETHER - 1]]
            blocks = list(self._estimate(np.stack([member.vector for member in group]), parts))
            for at, member in enumerate(group):
                member.error = float(blocks[0][1][at])
                member.cosines = np.concatenate([block[:, at] for block, _ in blocks])
        assert leader.cosines is not None
        return leader.cosines, leader.error

    def _estimate(self, vectors: Floats, parts: Parts) -> Iterator[tuple[Floats, Floats]]:
        """Cosines (p, n) of parts and vectors, of some parts after another, and how far those of
        each vector (n,) can be from the exact ones (0: these are)."""
        coded_count, step = self._code_some(parts, len(vectors)), max(1, _SUMS // len(vectors))
        if coded_count:
            codes, scales, apart, _ = _encode(vectors)
            errors: Floats = self._apart * _measure(vectors) + self._longest * apart
            library: Any = kernels()
            packed = library.dots_pack(codes)
            for start in range(0, coded_count, step):
                block = self._codes.view()[start : start + step]
                if len(vectors) == 1:
                    sums = library.cdist(block, codes, metric="dot", out_dtype="float32")
                else:
                    sums = library.dots_packed(block, packed)
                part_scales = self._scales.view()[start : start + step, None]
                cosines = np.multiply(sums, part_scales, dtype=np.float32)
                cosines *= scales
                yield cosines, errors + np.float32(_ROUNDING)
        step = min(step, BLOCK)
        for start in range(coded_count, len(parts), step):
            newer = widen(parts[start : start + step])
            yield products(newer[:, None], vectors), np.zeros(len(vectors), np.float32)

    def _code_some(self, parts: Parts, queries: int) -> int:
        """Give codes to some of the parts without: one query does not wait for all. The number of
        parts that have codes."""
        newer = parts[len(self._codes) :][:STEP]
        if len(newer) and len(parts) * queries >= WORTH and kernels() is not None:
            codes, scales, apart, lengths = _encode(widen(newer))
            self._codes.reserve(len(parts))
            self._codes.add(codes)
            self._scales.add(scales)
            self._apart = max(self._apart, float(apart.max()))
            self._longest = max(self._longest, float(lengths.max()))
        return len(self._codes)


def _encode(rows: Floats) -> tuple[NDArray[np.int8], Floats, Floats, Floats]:
    """Codes of rows (n, d), the value (n,) of a code of 1 in each, and of each decoded row the
    distance (n,) from the row and the length (n,)."""
    scales = np.maximum(np.abs(rows).max(axis=1), _LEAST_SCALE) / np.float32(_MOST)
    remainders = rows / scales[:, None]
    codes = np.rint(remainders)
    remainders -= codes
    return codes.astype(np.int8), scales, _measure(remainders) * scales, _measure(codes) * scales


def _measure(rows: Floats) -> Floats:
    """The length of each row."""
    return np.sqrt(products(rows, rows))
