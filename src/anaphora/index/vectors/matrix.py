"""Vectors of one embedder in memory, scanned exactly: the best cosine of each text with a query.

A text is identified by a key, such as its hash; a long text has several parts. They are kept in 16
bits, as they are stored, and widened for each product: that changes no bit of a cosine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.rows import GrowingColumn

BLOCK: Final = 1_024
"""Parts that are widened at once: they stay in the cache for the product."""

Floats = NDArray[np.float32]
Parts = NDArray[np.float16]


@cache
def kernels() -> Any | None:
    """The library with products of bytes and quick widening, None where it has no wheel."""
    try:
        import numkong
    except ImportError:
        return None
    return numkong


def to_float16(parts: NDArray[np.float32]) -> bytes:
    """Vectors of shape (parts, dimensions) as stored bytes: float16, little-endian."""
    return parts.astype("<f2").tobytes()


def from_float16(data: bytes, dimensions: int) -> NDArray[np.float32]:
    """Stored bytes as float32 of shape (parts, dimensions).

    New vectors pass through here too, so that scores do not change when the index is reopened.
    """
    return widen(np.frombuffer(data, "<f2").reshape(-1, dimensions))


def widen(parts: Parts) -> Floats:
    """The same numbers in 32 bits: in NumPy that alone takes ten times as long as a product."""
    library = kernels()
    if library is None:
        return parts.astype(np.float32)
    return np.asarray(library.astype(parts, "float32"))


@dataclass(frozen=True, slots=True)
class MatrixView:
    """The vectors of M texts at one moment: `parts` (P, dimensions), `starts` (M,).

    `more` are the parts that are not the first of their text, `owners` the texts they belong to.
    """

    parts: Parts
    starts: NDArray[np.int64]
    more: NDArray[np.int64]
    owners: NDArray[np.int64]

    def best(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of the best part of each text, shape (M,)."""
        return self.best_parts(multiply(self.parts, vector))

    def best_parts(self, similarities: NDArray[np.float32]) -> NDArray[np.float32]:
        """The greatest similarity among the parts (P,) of each text, shape (M,)."""
        if len(self.starts) == len(self.parts):
            return similarities
        best_similarities: NDArray[np.float32] = similarities[self.starts]
        # Few texts have several parts: a pass over all parts would cost more.
        np.maximum.at(best_similarities, self.owners, similarities[self.more])
        return best_similarities

    def some(self, vector: NDArray[np.float32], texts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Bit for bit `best(vector)[texts]`, of few texts without reading the others."""
        if not len(texts):
            return np.empty(0, np.float32)
        if len(texts) > len(self.starts) // 4:
            return self.best(vector)[texts]
        if len(self.starts) == len(self.parts):
            return multiply(self.parts[self.starts[texts]], vector)
        rows, begins = self.parts_of(texts)
        best_similarities: NDArray[np.float32] = np.maximum.reduceat(
            multiply(self.parts[rows], vector), begins
        )
        return best_similarities

    def pairs(self, texts: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float32]:
        """The cosine of the first part of each text to the best part of the other one."""
        rows, begins = self.parts_of(others)
        first_parts = np.repeat(self.starts[texts], np.diff(begins, append=len(rows)))
        best_similarities: NDArray[np.float32] = np.maximum.reduceat(
            products(widen(self.parts[rows]), widen(self.parts[first_parts])), begins
        )
        return best_similarities

    def each(self, vector: NDArray[np.float32], text: int) -> NDArray[np.float32]:
        """The cosine of each part of one text, in the order of the text."""
        return multiply(self.parts[self.parts_of(np.array([text], np.int64))[0]], vector)

    def first_part(self, text: int) -> Floats:
        """The vector of a text, of a long one that of its beginning."""
        return widen(self.parts[self.starts[text]])

    def parts_of(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of these texts' parts, one text after another, and where each text begins."""
        first_rows = self.starts[texts]
        following = np.minimum(texts + 1, len(self.starts) - 1)
        ends = np.where(texts < len(self.starts) - 1, self.starts[following], len(self.parts))
        counts = ends - first_rows
        begins = np.concatenate(([0], np.cumsum(counts)[:-1]))
        return np.repeat(first_rows - begins, counts) + np.arange(int(counts.sum())), begins


def products(parts: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The products of vectors (…, dimensions) with others or with one, by one thread."""
    # Not `parts @ vector`: that wakes the threads of the linear algebra library, which took 7 to
    # 25 ms instead of 0.6 while other processes used the processors.
    dots: NDArray[np.float32] = np.vecdot(parts, vectors)
    return dots


def multiply(parts: Parts, vector: Floats) -> Floats:
    """The product of each of many parts (P, dimensions) with one vector, shape (P,)."""
    similarities = np.empty(len(parts), np.float32)
    for start in range(0, len(parts), BLOCK):
        block = parts[start : start + BLOCK]
        similarities[start : start + BLOCK] = products(widen(block), vector)
    return similarities


class Matrix:
    """A growing set of texts' vectors. Earlier views stay valid while it grows."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._parts = GrowingColumn(np.float16, width=dimensions)
        self._starts = GrowingColumn()
        self._more = GrowingColumn()
        self._owners = GrowingColumn()
        self._entries: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, keys: Sequence[bytes], blobs: Sequence[bytes]) -> None:
        """Add texts' stored vectors; texts that have vectors already keep them."""
        if not all(key not in self._entries for key in keys) or len(set(keys)) != len(keys):
            new_blobs = {k: b for k, b in zip(keys, blobs, strict=True) if k not in self._entries}
            keys, blobs = list(new_blobs), list(new_blobs.values())
        if not keys:
            return
        width = 2 * self.dimensions
        counts = np.fromiter((len(blob) // width for blob in blobs), np.int64, len(blobs))
        first_entry = self.append(b"".join(blobs), counts)
        self._entries.update(zip(keys, range(first_entry, first_entry + len(keys)), strict=True))

    def append(self, data: bytes, counts: NDArray[np.int64]) -> int:
        """Add texts without keys; the number of the first.

        `data` is their stored vectors one after another, `counts` (n,) how many each text has.
        """
        rows = np.frombuffer(data, "<f2").reshape(-1, self.dimensions)
        part_count, first_text = len(self._parts), len(self._starts)
        self._parts.add(rows)
        starts = np.cumsum(counts) - counts
        if len(rows) > len(counts):
            several = np.repeat(np.arange(len(counts)), counts)
            later = np.setdiff1d(np.arange(len(rows)), starts, assume_unique=True)
            self._more.add(part_count + later)
            self._owners.add(first_text + several[later])
        self._starts.add(part_count + starts)
        return first_text

    def keep_only(self, keys: Iterable[bytes]) -> None:
        """Forget the vectors of all other texts; their memory is freed at the next opening."""
        wanted_keys = set(keys)
        self._entries = {key: number for key, number in self._entries.items() if key in wanted_keys}

    def entries(self, keys: Sequence[bytes]) -> NDArray[np.int32]:
        """The index of each text in `view().best(...)`, -1 for one without a vector."""
        number_of = self._entries.get
        return np.fromiter((number_of(key, -1) for key in keys), np.int32, len(keys))

    def view(self) -> MatrixView:
        """The vectors as they are now."""
        columns = (self._parts, self._starts, self._more, self._owners)
        return MatrixView(*(column.view() for column in columns))

    def reserve(self, parts: int) -> None:
        """Make room for parts that are about to be added."""
        if not len(self._parts):
            self._parts.reserve(parts)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest rows with their cosines, best first; `exact` is False for an approximation."""

    rows: NDArray[np.int64]
    cosines: NDArray[np.float64]
    exact: bool = True


def best_of(rows: NDArray[np.int64], cosines: NDArray[np.float64], limit: int) -> Nearest:
    """The best `limit` rows, and those that tie with the last: a cut must not decide a tie."""
    if 0 < limit < len(rows):
        cut_index = len(rows) - limit
        keep = cosines >= np.partition(cosines, cut_index)[cut_index]
        rows, cosines = rows[keep], cosines[keep]
    order = np.argsort(-cosines, kind="stable")
    return Nearest(rows[order], cosines[order])


def best_part(
    rows: NDArray[np.int64], cosines: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each row once, with the best of its parts' cosines."""
    distinct_rows, positions = np.unique(rows, return_inverse=True)
    best_cosines = np.full(len(distinct_rows), -np.inf)
    np.maximum.at(best_cosines, positions, cosines)
    return distinct_rows, best_cosines
