"""Words by row: what lies on the disk, and what waits in memory to be written there.

In: a generation of words on disk, documents by row. Out: which document a row is, what waits, and
whether the disk holds what counts no more. It never reads truth, and knows nothing of scores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from anaphora.index.words.manifest import Document, WordBulk, WordFiles
from anaphora.index.words.segment import WORD_INDEX_ERRORS

BulkT = TypeVar("BulkT", bound=WordBulk[Any])
DocumentT = TypeVar("DocumentT", bound=Document)
MainT = TypeVar("MainT")
TailT = TypeVar("TailT")


class WordRows(ABC, Generic[BulkT, DocumentT, MainT, TailT]):
    """The words of one namespace's things of one kind, by row. One thread at a time.

    `term` replaces each token; `key_tag` tells one key's words from another's (sealing). `MainT` is
    the bulk opened for search, `TailT` what waits, in the form that is searched.
    """

    def __init__(
        self, folder: Path, files: WordFiles[BulkT], term: Callable[[str], str] | None, key_tag: str
    ) -> None:
        self.folder = folder
        self.bulk = files.bulk()
        self.stale = False
        self._files = files
        self._key_tag = key_tag
        self._term = term
        self._main: MainT | None = None
        self._row_of = np.full(1, -1, np.int64)
        self._doc_of: dict[int, int] = {}
        self._waiting: dict[int, DocumentT] = {}
        # Made with the first question: whole texts are quicker to write down than to keep by word.
        self._tail: TailT | None = None

    @abstractmethod
    def _opened(self, place: Path, bulk: BulkT) -> MainT:
        """Open a generation; one of WORD_INDEX_ERRORS where the files are not those of `bulk`."""

    @abstractmethod
    def _add(self, documents: Iterable[tuple[int, DocumentT]]) -> None:
        """Add documents by row to the tail, where it has been made."""

    def open(self, bulk: BulkT, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from `bulk`, whose files lie in the folder; False where they do not fit it.

        `row_of` gives a key's row, -1 for a key that is gone. What waits in the tail stays there
        unless the bulk has it. `stale` is set where the bulk holds what is gone as of `known_upto`.
        """
        if not bulk.meta.generation:
            return False
        try:
            main = self._opened(self.folder / bulk.meta.generation, bulk)
        except WORD_INDEX_ERRORS:
            return False
        rows = np.fromiter((row_of(one) for one in bulk.ids), np.int64, len(bulk.ids))
        self._main, self.bulk = main, bulk
        self._doc_of = {row: doc for doc, row in enumerate(rows.tolist(), 1) if row >= 0}
        self._row_of = np.concatenate((np.full(1, -1, np.int64), rows))
        if len(self._doc_of) < np.count_nonzero(rows >= 0):
            # Of two documents of one row, the later one counts.
            counting = np.fromiter(self._doc_of.values(), np.int64, len(self._doc_of))
            self._row_of[:] = -1
            self._row_of[counting] = rows[counting - 1]
        self.stale = bool((rows < 0).any()) and bulk.upto <= known_upto
        waiting, self._waiting, self._tail = self._waiting, {}, None
        for row, document in waiting.items():
            self.put(row, document)
        return True

    def purge(self) -> None:
        """Take what was forgotten off the disk at once; what is open here goes on answering."""
        if self.stale and self.bulk.meta.generation:
            self._files.remove(self.folder, self.bulk.meta.generation, self._key_tag)

    @property
    def waiting(self) -> int:
        """How many documents are in memory alone."""
        return len(self._waiting)

    def documents(self) -> list[DocumentT]:
        """What waits to be written, oldest first."""
        return list(self._waiting.values())

    def put(self, row: int, document: DocumentT) -> None:
        """Take in a document, new or as it was; its tokens are replaced by this index's `term`."""
        doc = self._doc_of.get(row, 0)
        if doc and self.bulk.digests[doc - 1] == document.digest:
            self._take_back(row)
            return
        self._drop_from_bulk(row)
        if self._waiting.get(row) != document:
            self._take_back(row)
            self._waiting[row] = document
            if self._tail is not None:
                self._add([(row, document)])

    def drop(self, row: int) -> None:
        """A row was deleted: its words count no more, and must leave the disk (`stale`)."""
        self._drop_from_bulk(row)
        self._take_back(row)

    def _drop_from_bulk(self, row: int) -> None:
        doc = self._doc_of.pop(row, 0)
        if doc:
            self._row_of[doc] = -1
            self.stale = True

    def _take_back(self, row: int) -> None:
        if self._waiting.pop(row, None) is not None:
            self._tail = None
