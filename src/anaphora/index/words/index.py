"""The word index of items with rows: a segment on disk, and documents waiting in memory.

A document is identified by its key and the digest of its tokens; of two documents of one row the
later one counts. The database is never read here: a folder that is torn, foreign or gone is filled
again by the caller, which has the texts. Scoring is up to the word indexes of memories and
sections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.manifest import IndexedDocument, SegmentFolder, TermOf, WordManifest
from anaphora.index.words.postings import MemoryPostings, WordStatistics
from anaphora.index.words.segment import WORD_INDEX_ERRORS, Boosts, Segment, SegmentPart

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class WordIndex:
    """The words of one namespace's items of one kind, by row. One thread at a time.

    `term_of` replaces each token (sealing). `stale`: the segment has documents that were deleted or
    replaced; `gone` is how many of its documents no longer count.
    """

    def __init__(self, folder: SegmentFolder, term_of: TermOf | None = None) -> None:
        self.folder = folder
        self.manifest = WordManifest()
        self.segment: Segment | None = None
        self.stale = False
        self._term_of = term_of
        self._row_of = np.full(1, -1, np.int64)
        # By row, 0 for a row that is not in the segment; newer rows lie beyond the end.
        self._numbers = np.empty(0, np.int64)
        self._counting = 0
        self._waiting: dict[int, IndexedDocument] = {}
        # Made with the first query: storing whole texts is quicker than indexing each word.
        self._postings: MemoryPostings | None = None

    def open(self, manifest: WordManifest, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from the files of `manifest`; False if they do not fit it.

        `row_of` gives a key's row, -1 for a deleted key. Documents in memory stay there unless the
        segment has them. `stale` is set if the segment has documents deleted as of `known_upto`.
        """
        if not manifest.meta.generation:
            return False
        try:
            segment = self.folder.open(manifest)
        except WORD_INDEX_ERRORS:
            return False
        rows = np.fromiter(map(row_of, manifest.ids), np.int64, len(manifest.ids))
        on_disk = _mask_parts(segment.parts, len(rows))
        rows[~on_disk] = -1
        self.segment, self.manifest = segment, manifest
        current = np.flatnonzero(rows >= 0)
        numbers = self._numbers = np.zeros(int(rows.max(initial=-1)) + 1, np.int64)
        # Of two documents of one row, the later one counts.
        np.maximum.at(numbers, rows[current], current + 1)
        counting = numbers[numbers > 0]
        self._row_of = np.full(len(rows) + 1, -1, np.int64)
        self._row_of[counting] = rows[counting - 1]
        self._counting = len(counting)
        self.stale = bool((rows[on_disk] < 0).any()) and manifest.upto <= known_upto
        # Another process dropped a part, and its files may still exist.
        self.stale |= len(segment.parts) < len(manifest.parts)
        waiting, self._waiting, self._postings = self._waiting, {}, None
        for row, document in waiting.items():
            self.put(row, document)
        return True

    def purge(self) -> bool:
        """Remove forgotten words from the disk at once; the open segment goes on answering."""
        is_due = self.stale and bool(self.manifest.meta.generation)
        if is_due:
            self.folder.drop(self.manifest, self._worn_parts())
        return is_due

    def rest(self) -> tuple[WordManifest, list[str]]:
        """The manifest of what stays on disk as it is, and the keys to write again.

        The keys are those of parts with forgotten or replaced documents, of dropped parts, and of
        parts that are joined. Waiting documents are not among them. Raises one of
        WORD_INDEX_ERRORS.
        """
        worn_parts = self._worn_parts() if self.stale else []
        current_parts: list[SegmentPart] = []
        # What was not written in parts goes as a whole.
        if worn_parts or not self.stale:
            disk_parts = self.folder.parts_of(self.manifest)
            current_parts = [part for part in disk_parts if part not in worn_parts]
        new_count = self.waiting + self._counting - sum(part.count for part in current_parts)
        parts = self.folder.staying(current_parts, max(0, new_count))
        rewritten = self._row_of >= 0
        if parts:
            rewritten[1:] &= ~_mask_parts(parts, len(rewritten) - 1)
        keys = [self.manifest.ids[number - 1] for number in np.flatnonzero(rewritten).tolist()]
        return replace(self.manifest, parts=parts) if parts else WordManifest(), keys

    def find_missing(self, rows: Rows) -> Rows:
        """Those of `rows` that have words neither on disk nor waiting."""
        missing = rows[self.numbers(rows) == 0].tolist()
        return np.array([row for row in missing if row not in self._waiting], np.int64)

    def _worn_parts(self) -> list[SegmentPart]:
        """The parts with a document that no longer counts, and those that were dropped."""
        open_here = self.segment.parts if self.segment is not None else ()
        return [
            part
            for part in self.manifest.parts
            if part not in open_here or (self._row_of[part.first : part.upto + 1] < 0).any()
        ]

    @property
    def count(self) -> int:
        """How many documents are in the segment."""
        return 0 if self.segment is None else self.segment.meta.count

    @property
    def gone(self) -> int:
        """How many documents of the segment no longer count: with many, it is worth rewriting."""
        return self.count - self._counting

    @property
    def waiting(self) -> int:
        """How many documents are in memory only."""
        return len(self._waiting)

    def documents(self) -> list[IndexedDocument]:
        """The documents waiting to be written, oldest first."""
        return list(self._waiting.values())

    def document(self, row: int) -> IndexedDocument | None:
        """The waiting document of a row, or None."""
        return self._waiting.get(row)

    def put(self, row: int, document: IndexedDocument) -> None:
        """Index a document, new, changed or unchanged."""
        number = self._number_of(row)
        if number and self.manifest.digest(number) == document.digest:
            self._take_back(row)
            return
        self._drop_stored(row)
        if self._waiting.get(row) != document:
            self._take_back(row)
            self._waiting[row] = document
            if self._postings is not None:
                self._postings.add(row, document.texts, document.forms)

    def drop(self, row: int) -> None:
        """Forget a deleted row: its words no longer count, and must leave the disk (`stale`)."""
        self._drop_stored(row)
        self._take_back(row)

    # Scoring.

    @property
    def postings(self) -> MemoryPostings:
        """The waiting documents, by term."""
        if self._postings is None:
            self._postings = MemoryPostings(len(self.folder.fields))
            for row, document in self._waiting.items():
                self._postings.add(row, document.texts, document.forms)
        return self._postings

    def term(self, token: str) -> str:
        """The term of a token."""
        return token if self._term_of is None else self._term_of(token)

    @property
    def statistics(self) -> WordStatistics:
        """How often terms occur on disk and in memory together."""
        return WordStatistics(self.segment, (self.postings,))

    def search(
        self, boosts: Boosts, limit: int, among: Sequence[int] | None = None
    ) -> tuple[Rows, Scores]:
        """Rows and scores of the segment's best `limit` documents; row -1: no longer counts."""
        if self.segment is None:
            return np.empty(0, np.int64), np.empty(0)
        numbers, scores = self.segment.search(boosts, limit, among=among)
        return self._row_of[numbers], scores

    def in_memory(self, weights: Sequence[Mapping[str, float]]) -> tuple[Rows, Scores]:
        """Waiting rows that match, once each, with the sum of their fields' BM25.

        `weights` has the terms' weights for each field.
        """
        keys, parts = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        for field, field_weights in enumerate(weights):
            matches, scores = self.postings.scores(
                field_weights, self.statistics.average(field), field
            )
            keys.append(matches)
            parts.append(scores)
        rows, positions = np.unique(np.concatenate(keys), return_inverse=True)
        sums: Scores = np.bincount(positions, np.concatenate(parts), len(rows)).astype(np.float64)
        return rows, sums

    def numbers(self, rows: Rows) -> Rows:
        """The number of each row's document in the segment, 0 for a row without one."""
        numbers = np.zeros(len(rows), np.int64)
        is_stored = (rows >= 0) & (rows < len(self._numbers))
        numbers[is_stored] = self._numbers[rows[is_stored]]
        return numbers

    def _number_of(self, row: int) -> int:
        return int(self._numbers[row]) if row < len(self._numbers) else 0

    def _drop_stored(self, row: int) -> None:
        number = self._number_of(row)
        if number:
            self._numbers[row] = 0
            self._row_of[number] = -1
            self._counting -= 1
            self.stale = True

    def _take_back(self, row: int) -> None:
        if self._waiting.pop(row, None) is not None:
            self._postings = None


def _mask_parts(parts: Sequence[SegmentPart], count: int) -> NDArray[np.bool_]:
    """Which of the numbers from 1 to `count` a part has; all if there are no parts."""
    present = np.full(count, not parts, np.bool_)
    for part in parts:
        present[part.first - 1 : part.upto] = True
    return present
