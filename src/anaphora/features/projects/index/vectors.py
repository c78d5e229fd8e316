"""The vectors of sections and notes: cosines of candidates that were found by words."""

from __future__ import annotations

from itertools import groupby
from operator import is_

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.store.source import SectionSource, Vectors
from anaphora.index.vectors.matrix import Matrix


class SectionVectors:
    """The vectors of one namespace's sections and notes. One thread at a time."""

    def __init__(self, source: SectionSource, embedder: tuple[str, int]) -> None:
        self._source = source
        self._embedder, self._dimensions = embedder
        self._matrix = Matrix(self._dimensions)
        self._upto = [0, 0]
        self._entries: tuple[tuple[bytes, ...], int, NDArray[np.int32]] | None = None

    def sync(self) -> None:
        """Load vectors that are newer than the loaded ones."""
        sections = self._source.section_vectors(self._embedder, self._upto[0])
        self._add(sections, "")
        notes = self._source.note_vectors(self._embedder, self._upto[1])
        self._add(notes, "note:")
        self._upto = [sections.seq, notes.seq]

    def _add(self, stored: Vectors, prefix: str) -> None:
        pairs = zip(stored.owners, stored.blobs, strict=True)
        blobs_by_key = {
            (prefix + owner).encode("utf-8", "surrogatepass"): b"".join(b for _, b in parts)
            for owner, parts in groupby(pairs, key=lambda pair: pair[0])
        }
        self._matrix.add(list(blobs_by_key), list(blobs_by_key.values()))

    def embedded(self, keys: tuple[bytes, ...]) -> NDArray[np.bool_]:
        """Which rows have a vector, by the keys of all rows."""
        return self._entries_of(keys) >= 0

    def cosines(
        self, vector: NDArray[np.float32], keys: tuple[bytes, ...], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The cosine of each of `rows` with a unit vector, NaN if the row has none."""
        cosines = np.full(len(rows), np.nan)
        entries = self._entries_of(keys)[rows]
        has = np.flatnonzero(entries >= 0)
        if not len(has):
            return cosines
        cosines[has] = self._matrix.view().some(vector, entries[has].astype(np.int64))
        return cosines

    def _entries_of(self, keys: tuple[bytes, ...]) -> NDArray[np.int32]:
        cached_entries, size = self._entries, len(self._matrix)
        if cached_entries is not None and cached_entries[0] is keys and cached_entries[1] == size:
            return cached_entries[2]
        if (
            cached_entries is None
            or cached_entries[1] != size
            or len(keys) < len(cached_entries[0])
        ):
            entries = self._matrix.entries(keys)
        else:
            # Cached for an earlier state of the same rows: nearly all are unchanged.
            is_unchanged = np.fromiter(
                map(is_, keys, cached_entries[0]), np.bool_, len(cached_entries[0])
            )
            at = np.concatenate(
                (np.flatnonzero(~is_unchanged), np.arange(len(is_unchanged), len(keys)))
            )
            entries = np.empty(len(keys), np.int32)
            entries[: len(is_unchanged)] = cached_entries[2]
            entries[at] = self._matrix.entries([keys[row] for row in at.tolist()])
        self._entries = (keys, size, entries)
        return entries
