"""A sketch of many vectors: which pairs can be close is found without multiplying them out.

In: unit vectors (parts, dimensions), as they grow. Out: for queries and a cosine, every pair that
could reach it, and few that do not. Each vector is kept by its leading directions, as a principal
component analysis of some of them finds them, and by the length of what is left of it. It never
decides what is close: whoever asks computes the cosine of what comes.

The bound, for x = a + b and q = c + d with a, c along the leading directions and b, d across them:
x·q ≤ a·c + |b| |d|, by Cauchy-Schwarz. It is itself one product, of a number more than directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.outline import Outline

LEADING: Final = 64
"""Directions kept: of MiniLM's 384 they hold 0.6 of the length, and leave 6 to 30 of 100,000 parts
for one query at a cosine of 0.8."""

_SAMPLE: Final = 8192
_STEP: Final = 16_384
# What the float32 arithmetic can take away from the bound.
_ROUNDING: Final = 1e-4
_OF_SQUARE: Final = 1e-5
# Vectors that the directions do not fit leave so much that multiplying all of them out is cheaper.
_TOO_MANY: Final = 1 / 32

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


class Sketch:
    """Short forms of a growing number of parts. One thread adds to it, others may ask meanwhile."""

    def __init__(self, parts: Floats) -> None:
        # The directions of these serve all that come: should they fit badly, the bound is looser.
        self._axes = _leading(parts)
        self._rows = np.empty((0, self._axes.shape[1] + 1), np.float32)
        self._codes = Outline(self._rows.shape[1])
        self._count = 0

    def __len__(self) -> int:
        """How many parts it has: all that a single question needs of them."""
        return len(self._codes)

    @property
    def taken(self) -> int:
        """How many it has for `pairs`."""
        return self._count

    def extend(self, parts: Floats, upto: int) -> None:
        """Take in the first `upto` of the parts, but for those that are here, for `pairs`."""
        if upto > len(self._rows):
            room = len(parts) + min(len(parts) // 2, _STEP) * bool(self._count)
            rows = np.empty((room, self._rows.shape[1]), np.float32)
            rows[: self._count] = self._rows[: self._count]
            self._rows = rows
        for start in range(self._count, upto, _STEP):
            some = parts[start : min(start + _STEP, upto)]
            self._rows[start : start + len(some)] = _short(some, self._axes)
            self._count = start + len(some)

    def encode(self) -> None:
        """Make what was taken in ready for `could_be`."""
        # One question reads all rows once: the fewer bytes they have the better.
        self._codes.add(self._rows[len(self._codes) : self._count])

    def could_be(self, vector: Floats, closer: float, upto: int) -> Places | None:
        """Places of the parts that could be so close to one vector, None where that is too many.

        Of the first `upto`, which is no more than `len`.
        """
        rough = self._codes.rough(_short(vector[None], self._axes)[0])
        found = np.flatnonzero(rough.cosines[:upto] >= closer - _ROUNDING - rough.error)
        return None if len(found) > _TOO_MANY * upto else found

    def pairs(
        self, vectors: Floats, parts: Floats, closer: float
    ) -> Iterator[tuple[Places, Places]]:
        """(places among `vectors`, places among `parts`) of all pairs that could be so close.

        `parts` are those that were taken in, all of them.
        """
        short = _short(vectors, self._axes)
        for start in range(0, self._count, _STEP):
            end = min(start + _STEP, self._count)
            least = closer - _ROUNDING
            found = np.flatnonzero((short @ self._rows[start:end].T).ravel() >= least)
            if len(found) > _TOO_MANY * len(vectors) * (end - start):
                found = np.flatnonzero((vectors @ parts[start:end].T).ravel() >= least)
            at, place = np.divmod(found, end - start)
            yield at, place + start


def _leading(parts: Floats) -> Floats:
    """The leading directions (dimensions, LEADING) of some of the parts, evenly spread."""
    some = parts[:: max(1, len(parts) // _SAMPLE)].astype(np.float64)
    _, axes = np.linalg.eigh(some.T @ some)
    return np.ascontiguousarray(axes[:, ::-1][:, :LEADING], np.float32)


def _short(rows: Floats, axes: Floats) -> Floats:
    along = rows @ axes
    left = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", along, along)
    # Of two numbers that are nearly equal the difference is known to so many digits only.
    across = np.sqrt(np.maximum(left, 0.0) + np.float32(_OF_SQUARE))
    short: Floats = np.concatenate((along, across[:, None]), axis=1).astype(np.float32, copy=False)
    return short
