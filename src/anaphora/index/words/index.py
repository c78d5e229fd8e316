"""The word index of items with rows: a segment on disk, and documents waiting in memory.

A document is identified by its key and the digest of its tokens. The database is never read here:
a file that is torn, foreign or gone is filled again by the caller, which has the texts. What the
scores are used for is up to the word indexes of memories and sections.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.documents import TermOf
from anaphora.index.words.file import WordFile, WordPlan
from anaphora.index.words.postings import (
    MemoryPostings,
    Occurrences,
    TermNumbers,
    WordStatistics,
    bm25,
    numbers_of,
)
from anaphora.index.words.segment import Segment
from anaphora.index.words.writing import IndexedDocument

Rows = NDArray[np.int64]
FloatT = TypeVar("FloatT", bound=np.floating[Any])


class WordIndex:
    """The words of one namespace's items of one kind, by row. One thread at a time.

    `term_of` replaces each token (sealing).
    """

    def __init__(self, file: WordFile, term_of: TermOf | None = None) -> None:
        self.file = file
        self.segment: Segment | None = None
        self._term_of = term_of
        # By place in the segment: the row, -1 for a document that does not count.
        self._row_of = np.full(1, -1, np.int64)
        # By row, 0 for a row that is not in the segment, and at the end: newer rows lie beyond it.
        self._places = np.zeros(1, np.int64)
        self._waiting: dict[int, IndexedDocument] = {}
        # Keys of documents on disk that were deleted or replaced.
        self._worn: list[str] = []
        # Made with the first query: storing whole texts is quicker than indexing each word.
        self._postings: MemoryPostings | None = None
        # With what was counted of the words that were looked up, until a document changes.
        self._statistics: WordStatistics | None = None

    def open(self, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from the file; False if it cannot be read.

        `row_of` gives a key's row, -1 for a deleted key. Documents in memory stay there unless the
        segment has them. Documents deleted as of `known_upto` are to be erased.
        """
        segment = self.file.open()
        if segment is None:
            return False
        keys = segment.keys
        rows = np.fromiter((row_of(key) if key else -1 for key in keys), np.int64, len(keys))
        self.segment, self._row_of = segment, np.concatenate(([-1], rows))
        counting = np.flatnonzero(self._row_of >= 0)
        self._places = np.zeros(int(rows.max(initial=-1)) + 2, np.int64)
        self._places[self._row_of[counting]] = counting
        is_known = segment.upto <= known_upto
        self._worn = [keys[at] for at in np.flatnonzero(rows < 0).tolist() if keys[at]] * is_known
        waiting, self._waiting, self._postings = self._waiting, {}, None
        self._statistics = None
        for row, document in waiting.items():
            self.put(row, document)
        return True

    def purge(self) -> None:
        """Erase deleted and replaced documents from the file."""
        if self._worn:
            self.file.erase(self._worn)
            self._worn, self._statistics = [], None
            if self.segment is not None:
                self.segment.refresh()

    def plan(self, upto: int, readings: Mapping[int, str] | None = None) -> WordPlan:
        """What to write for a file with all documents, with new readings of rows on disk."""
        by_place = {self._place_of(row): line for row, line in (readings or {}).items()}
        by_place.pop(0, None)
        documents = list(self._waiting.values())
        return WordPlan(self.segment, self._row_of[1:] >= 0, documents, upto, by_place)

    def find_unread(self) -> Rows:
        """The rows on disk of which no reading is there."""
        rows = self._row_of[1:]
        return rows[:0] if self.segment is None else rows[(rows >= 0) & self.segment.unread]

    def find_missing(self, rows: Rows) -> Rows:
        """Those of `rows` that have words neither on disk nor waiting."""
        missing = rows[self._places.take(rows, mode="clip") == 0].tolist()
        return np.array([row for row in missing if row not in self._waiting], np.int64)

    @property
    def count(self) -> int:
        """How many documents are in the segment."""
        return 0 if self.segment is None else self.segment.count

    @property
    def gone(self) -> int:
        """How many documents on disk no longer count: with many, it is worth writing anew."""
        return len(self._worn)

    @property
    def waiting(self) -> int:
        """How many documents are in memory only."""
        return len(self._waiting)

    def put(self, row: int, document: IndexedDocument) -> None:
        """Index a document, new, changed or unchanged."""
        number = self._place_of(row)
        if number and self.segment is not None and self.segment.digest(number) == document.digest:
            self._take_back(row)
            return
        self._drop_stored(row)
        if self._waiting.get(row) != document:
            self._take_back(row)
            self._waiting[row] = document
            self._statistics = None
            if self._postings is not None:
                self._postings.add(row, document.texts, document.forms)

    def drop(self, row: int) -> None:
        """Forget a deleted row: its words no longer count, and `purge` erases them."""
        self._drop_stored(row)
        self._take_back(row)

    # Scoring.

    @property
    def postings(self) -> MemoryPostings:
        """The waiting documents, by term."""
        if self._postings is None:
            self._postings = MemoryPostings(self.file.fields)
            for row, document in self._waiting.items():
                self._postings.add(row, document.texts, document.forms)
        return self._postings

    def term(self, token: str) -> str:
        """The term of a token."""
        return token if self._term_of is None else self._term_of(token)

    @property
    def statistics(self) -> WordStatistics:
        """How often terms occur on disk and in memory together."""
        if self._statistics is None:
            self._statistics = WordStatistics(self.segment, (self.postings,))
        return self._statistics

    def readings_of(self, rows: Rows) -> list[str]:
        """What was read of each row that is on disk, "" for none."""
        if self.segment is None:
            return [""] * len(rows)
        return self.segment.readings(self._places.take(rows, mode="clip") * (rows >= 0))

    def entries(
        self, numbers: TermNumbers, idfs: Collection[float], field: int = 0
    ) -> tuple[Rows, Rows, NDArray[np.float32]]:
        """Where terms occur: which of them, the row, the BM25 part by the lengths of a field."""
        occurrences = self.occurrences(numbers, field)
        parts = bm25(occurrences, idfs, self.statistics.average(field))
        return occurrences.of_terms, occurrences.keys, parts

    def with_all(self, terms: Collection[str]) -> Rows:
        """The rows that have all these distinct terms in the first field."""
        rows = self.occurrences(numbers_of(terms)).keys
        return np.flatnonzero(np.bincount(rows) == len(terms))

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field; keys are rows."""
        parts: list[Occurrences] = []
        for postings in self.statistics.parts:
            if postings.count or not parts:
                occurrences = postings.occurrences(numbers, field)
                if postings is self.segment:
                    rows = self._row_of[occurrences.keys]
                    counting = rows >= 0
                    columns = occurrences._replace(keys=rows)
                    occurrences = Occurrences(*(column[counting] for column in columns))
                parts.append(occurrences)
        return (
            parts[0]
            if len(parts) == 1
            else Occurrences(*map(np.concatenate, zip(*parts, strict=True)))
        )

    def _place_of(self, row: int) -> int:
        return int(self._places[row]) if row < len(self._places) else 0

    def _drop_stored(self, row: int) -> None:
        number = self._place_of(row)
        if number and self.segment is not None:
            self._statistics = None
            self._places[row] = 0
            self._row_of[number] = -1
            self._worn.append(self.segment.key(number))

    def _take_back(self, row: int) -> None:
        if self._waiting.pop(row, None) is not None:
            self._postings = self._statistics = None


def best_of(keys: Rows, scores: NDArray[FloatT], limit: int) -> tuple[Rows, NDArray[FloatT]]:
    """The `limit` keys with the highest scores, best first; of equals the lower key."""
    if 0 < limit < len(keys):
        # Sorting all takes as long as scoring them.
        least = np.partition(scores, -limit)[-limit]
        keys, scores = keys[scores >= least], scores[scores >= least]
    order = np.lexsort((keys, -scores))[:limit]
    return keys[order], scores[order]
