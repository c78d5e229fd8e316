"""The word index of items with rows: their documents in memory, and on disk for the next opening.

The database is never read here. A document on disk counts if its mark is that of its item; all
others are made anew by the caller, which has the texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.index.rows import GrowingColumn
from anaphora.index.words.documents import IndexedDocument, TermNumbers, TermOf
from anaphora.index.words.postings import (
    GrowingWords,
    Occurrences,
    WordColumns,
    WordStatistics,
    bm25,
)
from anaphora.index.words.table import DocumentTable, StoredDocument

Rows = NDArray[np.int64]
FloatT = TypeVar("FloatT", bound=np.floating[Any])

ERASING: Final = 2.0
"""Seconds in which others let go of the words on disk, before these are removed instead."""

_AT_ONCE: Final = 500
"""Documents that are written in one transaction."""

_BEHIND: Final = 64
"""Documents that are written in the background between two calls: some 2 ms."""


class WordIndex:
    """The words of one namespace's items of one kind, by row. One thread at a time.

    `term_of` replaces each token (sealing). A document has so many `fields`.
    """

    def __init__(
        self, table: DocumentTable, term_of: TermOf | None = None, fields: int = 1
    ) -> None:
        self.table = table
        self._term_of = term_of
        self._fields = fields
        self._words = GrowingWords(fields=fields)
        self._hashes = GrowingColumn()
        # What the disk has to learn: by row, and the keys of what was deleted or replaced.
        self._due: dict[int, StoredDocument] = {}
        self._stale_keys: set[str] = set()

    def open(self, row_of: Callable[[str], int], marks: NDArray[np.int64]) -> None:
        """Take the documents on disk. `row_of` gives a key's row, -1 for a deleted one, `marks`
        the mark of each row."""
        stored = self.table.read()
        self._due, self._stale_keys = {}, set()
        documents: dict[int, IndexedDocument] = {}
        for key, mark, document in stored:
            row = row_of(key)
            if row >= 0 and marks[row] == mark:
                documents[row] = document
            elif row < 0:
                self._stale_keys.add(key)
        columns = WordColumns(
            documents.values(), documents, self._fields, read_forms=self.table.read_forms
        )
        self._words = GrowingWords(columns)
        self._hashes = GrowingColumn()
        hashes = self._hashes.extend_to(len(marks))
        hashes[list(documents)] = list(map(hash, documents.values()))

    def find_missing(self, rows: Rows) -> Rows:
        """Those of `rows` that have no words."""
        return np.array([row for row in rows.tolist() if row not in self._words], np.int64)

    @property
    def due(self) -> int:
        """How many documents the disk has to learn."""
        return len(self._due)

    @property
    def known(self) -> int:
        """How many documents there are."""
        return len(self._words)

    def put_all(self, documents: Mapping[int, StoredDocument]) -> int:
        """Index documents by row, new, changed or unchanged; how many of those known changed."""
        changed_count = 0
        hashes = self._hashes.extend_to(max(documents, default=-1) + 1)
        changed: dict[int, IndexedDocument] = {}
        for row, (key, _, document) in documents.items():
            if row in self._words:
                if hashes[row] == hash(document):
                    continue
                self._words.drop(row)
                changed_count += 1
                # What it was must leave the disk at once, as if it were deleted.
                self._stale_keys.add(key)
            hashes[row], changed[row] = hash(document), document
        self._due.update(documents)
        if changed:
            self._words.add(changed)
        return changed_count

    def drop(self, row: int, key: str) -> None:
        """Forget a deleted row: its words no longer count, and `purge` erases them."""
        self._words.drop(row)
        self._due.pop(row, None)
        self._stale_keys.add(key)

    def forget(self, keys: Iterable[str]) -> None:
        """Let `purge` erase documents that this process may never have seen."""
        self._stale_keys.update(keys)

    def write_some(self, changed: Callable[[], Iterable[str]]) -> bool:
        """Write as many as calls can wait for; whether there are more, and they can be written."""
        return self.write(changed, _BEHIND) and bool(self._due)

    def write(self, changed: Callable[[], Iterable[str]], limit: int | None = None) -> bool:
        """Write up to `limit` documents that are due; see `DocumentTable.write`."""
        if not self.purge():
            return False
        rows = list(islice(self._due, limit))
        for first in range(0, len(rows), _AT_ONCE):
            chunk = rows[first : first + _AT_ONCE]
            if not self.table.write([self._due[row] for row in chunk], changed):
                return False
            for row in chunk:
                del self._due[row]
        if rows:
            self.table.write_anew()
        return True

    def purge(self) -> bool:
        """Erase deleted and replaced documents from the disk; whether no file has a byte of them,
        which others may hinder."""
        if self._stale_keys and self.table.erase(self._stale_keys):
            self._stale_keys = set()
        return not self._stale_keys

    def purge_surely(self) -> None:
        """The same: on return no file has a byte of them.

        If others do not let go of the file in time, it is removed, and made anew at the next
        opening. Raises `StoreError` if that is refused, too.
        """
        until = time.monotonic() + ERASING
        while not self.purge():
            if time.monotonic() >= until:
                self.table.remove()
                self._stale_keys = set()
            else:
                time.sleep(0.005)

    # Scoring.

    def term(self, token: str) -> str:
        """The term of a token."""
        return token if self._term_of is None else self._term_of(token)

    @property
    def statistics(self) -> WordStatistics:
        """How often terms occur."""
        return self._words.statistics

    def entries(
        self, numbers: TermNumbers, idfs: Collection[float], field: int = 0
    ) -> tuple[Rows, Rows, NDArray[np.float32]]:
        """Where terms occur: which of them, the row, the BM25 part by the lengths of a field."""
        occurrences = self.occurrences(numbers, field)
        parts = bm25(occurrences, idfs, self.statistics.average(field))
        return occurrences.of_terms, occurrences.keys, parts

    def with_all(self, numbers: TermNumbers) -> Rows:
        """The rows that have all the terms of these distinct numbers in the first field."""
        return np.flatnonzero(np.bincount(self.occurrences(numbers).keys) == len(numbers))

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field; keys are rows."""
        return self.statistics.occurrences(numbers, field)


def best_of(keys: Rows, scores: NDArray[FloatT], limit: int) -> tuple[Rows, NDArray[FloatT]]:
    """The `limit` keys with the highest scores, best first; of equals the lower key."""
    if 0 < limit < len(keys):
        # Sorting all takes as long as scoring them.
        least = np.partition(scores, -limit)[-limit]
        keys, scores = keys[scores >= least], scores[scores >= least]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]
