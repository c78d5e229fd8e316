"""The word index of things that have rows: what lies in a segment, and what waits in memory.

A document is told by its key and the digest of its tokens; of two documents of one row the later
one counts. Truth is never read here: a folder that is torn, foreign or gone is filled again by
whoever has the texts. How documents are scored is up to the memories' and the sections' own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.manifest import Document, Manifest, SegmentFolder, TermOf
from anaphora.index.words.postings import MemoryPostings, WordStatistics
from anaphora.index.words.segment import WORD_INDEX_ERRORS, Boosts, Part, Segment

Rows = NDArray[np.int64]
Scores = NDArray[np.float64]


class WordIndex:
    """The words of one namespace's things of one kind, by row. One thread at a time.

    `term_of` replaces each token (sealing). `stale` says that the segment holds what was deleted or
    replaced, `gone` how many of its documents count no more.
    """

    def __init__(self, folder: SegmentFolder, term_of: TermOf | None = None) -> None:
        self.folder = folder
        self.manifest = Manifest()
        self.segment: Segment | None = None
        self.stale = False
        self._term_of = term_of
        self._row_of = np.full(1, -1, np.int64)
        # By row, 0 for one that is not in the segment; newer rows are behind its end.
        self._numbers = np.empty(0, np.int64)
        self._counting = 0
        self._waiting: dict[int, Document] = {}
        # Made with the first question: whole texts are quicker to write down than to keep by word.
        self._postings: MemoryPostings | None = None

    def open(self, manifest: Manifest, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from what `manifest` speaks of; False where the files do not fit it.

        `row_of` gives a key's row, -1 for a key that is gone. What waits in memory stays there
        unless the segment has it. `stale` is set where it holds what is gone as of `known_upto`.
        """
        if not manifest.meta.generation:
            return False
        try:
            segment = self.folder.open(manifest)
        except WORD_INDEX_ERRORS:
            return False
        rows = np.fromiter(map(row_of, manifest.ids), np.int64, len(manifest.ids))
        on_disk = _held(segment.parts, len(rows))
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
        # Somebody dropped a part: whether its files are gone too, who knows.
        self.stale |= len(segment.parts) < len(manifest.parts)
        waiting, self._waiting, self._postings = self._waiting, {}, None
        for row, document in waiting.items():
            self.put(row, document)
        return True

    def purge(self) -> bool:
        """Take what was forgotten off the disk at once; what is open here goes on answering."""
        due = self.stale and bool(self.manifest.meta.generation)
        if due:
            self.folder.drop(self.manifest, self._worn_parts())
        return due

    def rest(self) -> tuple[Manifest, list[str]]:
        """What stays on the disk as it lies there, and whose words are to be written anew.

        Those are of parts that hold what was forgotten or replaced, that went with it, or that are
        joined with others. What waits comes beside them. Raises one of WORD_INDEX_ERRORS.
        """
        worn = self._worn_parts() if self.stale else []
        there: list[Part] = []
        # What was not written in parts goes as a whole.
        if worn or not self.stale:
            there = [one for one in self.folder.parts_of(self.manifest) if one not in worn]
        fresh = self.waiting + self._counting - sum(part.count for part in there)
        parts = self.folder.staying(there, max(0, fresh))
        again = self._row_of >= 0
        if parts:
            again[1:] &= ~_held(parts, len(again) - 1)
        keys = [self.manifest.ids[number - 1] for number in np.flatnonzero(again).tolist()]
        return replace(self.manifest, parts=parts) if parts else Manifest(), keys

    def lacking(self, rows: Rows) -> Rows:
        """Those of `rows` whose words are neither on the disk nor waiting."""
        missing = rows[self.numbers(rows) == 0].tolist()
        return np.array([row for row in missing if row not in self._waiting], np.int64)

    def _worn_parts(self) -> list[Part]:
        """The parts with a document that counts no more, or that somebody has dropped."""
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
        """How many documents of the segment count no more: with many, it is worth writing anew."""
        return self.count - self._counting

    @property
    def waiting(self) -> int:
        """How many documents are in memory alone."""
        return len(self._waiting)

    def documents(self) -> list[Document]:
        """What waits to be written, oldest first."""
        return list(self._waiting.values())

    def document(self, row: int) -> Document | None:
        """The document of a row that waits to be written."""
        return self._waiting.get(row)

    def put(self, row: int, document: Document) -> None:
        """Take in a document, new or as it was."""
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
        """A row was deleted: its words count no more, and must leave the disk (`stale`)."""
        self._drop_stored(row)
        self._take_back(row)

    # For scores.

    @property
    def postings(self) -> MemoryPostings:
        """What waits in memory, by term."""
        if self._postings is None:
            self._postings = MemoryPostings(len(self.folder.fields))
            for row, document in self._waiting.items():
                self._postings.add(row, document.texts, document.forms)
        return self._postings

    def term(self, token: str) -> str:
        """What stands for a token."""
        return token if self._term_of is None else self._term_of(token)

    @property
    def statistics(self) -> WordStatistics:
        """How often terms occur in all of it, on disk and in memory."""
        return WordStatistics(self.segment, (self.postings,))

    def search(
        self, boosts: Boosts, limit: int, among: Sequence[int] | None = None
    ) -> tuple[Rows, Scores]:
        """Rows and scores of the segment's best `limit` documents, -1 for one that is gone."""
        if self.segment is None:
            return np.empty(0, np.int64), np.empty(0)
        numbers, scores = self.segment.search(boosts, limit, among=among)
        return self._row_of[numbers], scores

    def in_memory(self, weights: Sequence[Mapping[str, float]]) -> tuple[Rows, Scores]:
        """Rows that wait in memory and match, once each, with the sum of their fields' BM25.

        `weights` has each term's in each field.
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
        """The number of each row's document in the segment, 0 for one that is not there."""
        numbers = np.zeros(len(rows), np.int64)
        stored = (rows >= 0) & (rows < len(self._numbers))
        numbers[stored] = self._numbers[rows[stored]]
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


def _held(parts: Sequence[Part], count: int) -> NDArray[np.bool_]:
    """Which of the numbers from 1 to `count` a part has; all where there are no parts."""
    present = np.full(count, not parts, np.bool_)
    for part in parts:
        present[part.first - 1 : part.upto] = True
    return present
