"""The index in the memory of this process: the content of the file, and an overlay of changes.

With the overlay, a process answers correctly while another one is writing, or if nothing can be
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import IndexLost
from anaphora.index.turns.ledger import Delta, TurnIndexFile
from anaphora.index.turns.records import IndexChange, ThreadCheckpoint
from anaphora.index.turns.table import Speakers, Turns, make_table, make_turns, no_turns
from anaphora.index.turns.titles import TitleWords
from anaphora.index.turns.vectors import AnnView, TurnAnn
from anaphora.index.turns.view import TurnView, TurnWords
from anaphora.index.vectors.matrix import Matrix
from anaphora.index.words.postings import (
    GrowingWords,
    MemoryPostings,
    WordColumns,
    WordStatistics,
)
from anaphora.rank.turn_table import TurnTable


class State:
    """Everything of one index in memory. One thread at a time (the caller holds a lock).

    `read_forms` gives the words as written of all rows of the file.
    """

    def __init__(
        self,
        read_forms: Callable[[], Iterable[str]],
        dimensions: int,
        term_of: Callable[[str], str],
        ann: TurnAnn,
    ) -> None:
        self._dimensions = dimensions
        self._term_of = term_of
        self.point: Delta | None = None
        self.overlay: dict[str, IndexChange] = {}
        self.unsaved: dict[bytes, bytes] = {}
        self.failures: dict[bytes, tuple[int, str]] = {}
        self.checkpoints: dict[str, ThreadCheckpoint] = {}
        self.words = GrowingWords(WordColumns(read_forms=read_forms))
        self._titles = TitleWords(term_of)
        self._ann = ann
        self._entries: NDArray[np.int32]
        self._take_ann([], [])
        self._forget_rows()

    def _forget_rows(self) -> None:
        self.checkpoints = {}
        self._titles = TitleWords(self._term_of)
        self._turns = no_turns()
        self._speakers = Speakers()
        self._entries = np.empty(0, np.int32)
        self._changed()

    def _changed(self) -> None:
        self._view: TurnView | None = None
        self._rows: tuple[Turns, TurnTable, TurnWords] | None = None

    def absorb(self, ledger: TurnIndexFile) -> None:
        """Load new content of the file. Raises IndexLost and IndexBusy."""
        delta = ledger.delta(self.point, self._dimensions, self._ann.usable)
        if delta.whole:
            self._forget_rows()
            self._matrix.keep_only(delta.turns.hashes)
        last_read = 0 if self.point is None else self.point.last_row
        codes = self._speakers.codes(delta.speakers)
        delta.turns.rows["speaker"] = codes
        self._turns = self._turns.join(delta.turns)
        self.checkpoints = {**self.checkpoints, **delta.checkpoints}
        self._titles.follow(delta.checkpoints.values())
        thread_codes = np.array(
            [checkpoint.code for checkpoint in self.checkpoints.values()], np.int64
        )
        counts = np.array([checkpoint.count for checkpoint in self.checkpoints.values()], np.int64)
        most = int(thread_codes.max(initial=-1)) + 1
        rows = np.bincount(self._turns.rows["conversation"], minlength=most)
        if rows.sum() != counts.sum() or not np.array_equal(rows[thread_codes], counts):
            raise IndexLost("rows are missing")
        if delta.owners is not None:
            self._take_ann(*delta.owners)
        self._matrix.add(*delta.vectors)
        self._matrix.add(list(self.unsaved), list(self.unsaved.values()))
        self.failures = {**self.failures, **delta.failures}
        if delta.whole and len(self.words):
            self.words = self.words.only(self._turns.rows["id"])
        # Only up to the rows that were read: the words of rows that another process has added
        # since come with these rows.
        self.words.add(ledger.words(last_read, delta.last_row))
        if len(self.words) != len(self._turns):
            raise IndexLost("the words are not those of the rows")
        self.point = delta
        self._changed()
        self.overlay = {
            thread_id: change
            for thread_id, change in self.overlay.items()
            if (
                self.checkpoints.get(thread_id) is None
                if change.base is None
                else change.base.same_content(self.checkpoints.get(thread_id))
            )
        }

    def _take_ann(self, hashes: list[bytes], ids: list[int]) -> None:
        """Leave the vectors of these texts to the ANN index; memory starts empty for the others."""
        self._matrix = Matrix(self._dimensions)
        self._entries = np.empty(0, np.int32)
        self._far: AnnView | None = self._ann.view(ids)
        self._far_places = dict(zip(hashes, range(len(hashes)), strict=True))

    def keep(self, changes: Sequence[IndexChange]) -> None:
        """Answer with these changes although the file does not have them."""
        if changes:
            self.overlay.update({change.conversation_id: change for change in changes})
            self._changed()

    def drop(self, conversation_id: str) -> None:
        """Answer with the file's content of this thread."""
        if self.overlay.pop(conversation_id, None) is not None:
            self._changed()

    def known_checkpoints(self) -> dict[str, ThreadCheckpoint]:
        """The checkpoints in use: those of the file, replaced by those of the overlay."""
        if not self.overlay:
            return self.checkpoints
        checkpoints = dict(self.checkpoints)
        for key, change in self.overlay.items():
            if change.checkpoint is None:
                checkpoints.pop(key, None)
            else:
                checkpoints[key] = change.checkpoint
        return checkpoints

    def add_vectors(self, vectors: dict[bytes, bytes]) -> None:
        """Answer with these vectors, and hold them until they are saved."""
        self.unsaved.update(vectors)
        self._matrix.add(list(vectors), list(vectors.values()))
        for key in vectors:
            self.failures.pop(key, None)
        self._view = None

    @property
    def vectors(self) -> int:
        """How many texts have a vector."""
        return len(self._matrix) + len(self._far_places)

    @property
    def parts(self) -> int:
        """How many parts of texts are scanned in memory."""
        return len(self._matrix.view().parts)

    def speakers_of(self, checkpoint: ThreadCheckpoint) -> list[str | None]:
        """The speaker of each indexed turn of a thread, in order."""
        turns = self._turns.rows
        rows = np.flatnonzero(turns["conversation"] == checkpoint.code)
        rows = rows[np.argsort(turns["position"][rows], kind="stable")]
        names = self._speakers.names
        return [None if c < 0 else names[c] for c in turns["speaker"][rows].tolist()]

    def overlay_texts(self) -> dict[bytes, str]:
        """Texts of the overlay by hash."""
        return {r.text_hash: r.text for c in self.overlay.values() for r in c.records}

    def view(self) -> TurnView:
        """The current view. Raises IndexLost if the rows of the file are inconsistent."""
        if self._view is None:
            if self._rows is None:
                self._rows = self._make_rows()
            turns, table, words = self._rows
            entries = self._entries_of(turns.hashes)
            self._view = TurnView(
                table=table,
                hashes=turns.hashes,
                embedded=entries >= 0,
                _entries=entries,
                _matrix=self._matrix.view(),
                _ann=self._far,
                _words=words,
            )
        return self._view

    def _make_rows(self) -> tuple[Turns, TurnTable, TurnWords]:
        """All parts of a view except vectors, which are added more often than rows."""
        ids = {checkpoint.code: key for key, checkpoint in self.checkpoints.items()}
        turns = self._turns
        if self.overlay:
            keep = np.ones(len(turns), np.bool_)
            for key, change in self.overlay.items():
                if change.base is not None:
                    of_thread = turns.rows["conversation"] == self.checkpoints[key].code
                    keep &= ~(of_thread & (turns.rows["position"] >= change.drop_from))
            turns = turns.select(keep)
        base = len(turns)
        extra, overlay_postings = self._overlay_rows(ids)
        turns = turns.join(extra)
        checkpoints = self.known_checkpoints()
        titles = {
            code: checkpoints[key].title for code, key in ids.items() if checkpoints[key].title
        }
        last_row = self.point.last_row if self.point is not None else 0
        row_of = np.full(last_row + 1, -1, np.int32)
        row_of[turns.rows["id"][:base]] = np.arange(base, dtype=np.int32)
        words = TurnWords(
            statistics=WordStatistics(
                (self.words.columns, self.words.postings, overlay_postings),
                (self._titles.postings,),
            ),
            rows_of=(row_of, row_of, np.arange(base, len(turns), dtype=np.int32)),
            codes=np.array(sorted(ids), np.int32),
            term_of=self._term_of,
            titles=titles,
        )
        return turns, make_table(turns, ids, self._speakers.names), words

    def _overlay_rows(self, ids: dict[int, str]) -> tuple[Turns, MemoryPostings]:
        """Rows of the overlay; `ids` gets its new threads and loses those that it deletes."""
        extra, tail = no_turns(), MemoryPostings()
        for key, change in self.overlay.items():
            checkpoint = self.checkpoints.get(key)
            code = checkpoint.code if checkpoint is not None else max(ids, default=0) + 1
            if change.checkpoint is None:
                ids.pop(code, None)
                continue
            ids[code] = key
            for row, record in enumerate(change.records, len(extra)):
                tail.add(row, record.words)
            extra = extra.join(make_turns(code, change.records, self._speakers))
        return extra, tail

    def _entries_of(self, hashes: list[bytes]) -> NDArray[np.int32]:
        """The index of each row's cosine, those of the ANN index first; -1 without a vector.

        Only rows without a vector are looked up again.
        """
        if self.overlay or len(self._entries) > len(hashes):
            self._entries = np.empty(0, np.int32)
        new_entries = np.full(len(hashes) - len(self._entries), -1, np.int32)
        entries = np.concatenate((self._entries, new_entries))
        missing = np.flatnonzero(entries < 0)
        if len(missing):
            keys = [hashes[i] for i in missing.tolist()]
            in_memory, on_disk = self._matrix.entries(keys), self._far_places
            entries[missing] = np.where(in_memory < 0, -1, in_memory + len(on_disk))
            if on_disk:
                for at in np.flatnonzero(in_memory < 0).tolist():
                    entries[missing[at]] = on_disk.get(keys[at], -1)
        self._entries = np.empty(0, np.int32) if self.overlay else entries
        return entries
