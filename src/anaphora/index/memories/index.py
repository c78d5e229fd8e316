"""The index of memories: follows the database by its numbers, queried by vector, words, filters.

Memories that any process stored before a query are in its answer: checking for changes takes one
small read. Nothing is embedded here and no text stays in memory; the directory can vanish or be
torn at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.core.config import EXACT_CAP
from anaphora.core.limits import held_within
from anaphora.errors import AnaphoraError, Closed, SealChanged
from anaphora.index.maintenance import Background, IndexLost, try_lock
from anaphora.index.memories.filters import MemoryFilters
from anaphora.index.memories.rows import NEVER, MemoryRows, Moment
from anaphora.index.memories.snapshot import RowsSnapshot, SnapshotFile
from anaphora.index.memories.state import Candidates, MemoryQuery, MemoryState, Related
from anaphora.index.memories.vectors import MemoryVectors
from anaphora.index.memories.words import PART_SIZES, MemoryWords, memory_segments
from anaphora.index.rows import CURRENT, GONE
from anaphora.index.vectors.ann import ANN_ERRORS
from anaphora.index.words.index import WordIndex
from anaphora.index.words.lookup import Word
from anaphora.index.words.manifest import IndexedDocument, WordManifest, document_in_language
from anaphora.index.words.parts import PartSizes
from anaphora.index.words.segment import WORD_INDEX_ERRORS
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.records.store import Records
from anaphora.store.records.titles import record_title
from anaphora.store.records.vectors import RecordVectors
from anaphora.store.records.written import WrittenRecords
from anaphora.values.memories import MemoryRecord

TAIL_LIMIT = 500
"""Texts with words in memory only before they are written to disk."""

TAIL_SHARE: Final = 64
"""At least 1/TAIL_SHARE of all texts are written at once: a write lists all texts on disk."""

MUCH: Final = 20_000
"""More texts are written before the first answer: as postings, a million fill gigabytes."""

PAUSE: Final = 2.0
"""Seconds after forgetting before words are rewritten in the background."""

WORTH_KEEPING: Final = 2_000
"""Memories from which their columns are written on closing: fewer are read in 6 ms."""

UNREAD_SHARE: Final = 8
"""Columns are written again if opening had to read more than 1/UNREAD_SHARE from the database."""

_TAIL_AT_CLOSE = 100
_STEP = 4096
_ROUNDS = 3
ResultT = TypeVar("ResultT")


class MemoryIndex:
    """The memories of one namespace. Cheap to make: it opens on first use.

    Thread-safe; any number of processes may share `directory`. `embedder` is the (name, dimensions)
    of the vectors that are compared. `cap` is how many parts are scanned in memory before LanceDB
    stores them (0: always, None: never, since it stores vectors in clear). `sealer` replaces tokens
    on disk. With `background` False, only `settle` writes. `title_of` gives the title of a record;
    `part_sizes` are the sizes of the parts of words on disk.
    """

    def __init__(
        self,
        directory: Path,
        records: Records,
        vectors: RecordVectors,
        embedder: tuple[str, int],
        *,
        cap: int | None = EXACT_CAP,
        sealer: IndexSealer = CLEAR_INDEX,
        background: bool = True,
        title_of: Callable[[MemoryRecord], str] = record_title,
        part_sizes: PartSizes = PART_SIZES,
    ) -> None:
        self._directory = Path(directory)
        self._title_of = title_of
        self._records = records
        self._term_of = sealer.token_key if sealer.sealed else None
        self._background = background
        self._lock = threading.RLock()
        words = self._directory / "words"
        self._folder = memory_segments(words, sealer.mark, records.check, part_sizes)
        self._snapshot = SnapshotFile(self._directory / "rows.bin", sealer)
        # The snapshot on disk as last known, without its columns.
        self._known_snapshot = RowsSnapshot()
        self._state = MemoryState(
            records,
            MemoryRows(),
            MemoryFilters(),
            self._make_words(),
            MemoryVectors(self._directory / "ann", vectors, embedder, cap, background=background),
        )
        self._seq = -1
        self._worker = Background("anaphora-memory-index", self._lock)
        self._purging = threading.Lock()
        self._cut_short = threading.Event()
        self._at_once = threading.Event()
        self._closed = False

    # Following the database.

    def sync(self) -> int:
        """Catch up with the database; how many memories are new or changed."""
        with held_within(self._lock):
            if self._closed:
                raise Closed
            version = self._records.version()
            if version == self._seq:
                return 0
            opening = not 0 <= self._seq < version
            changed_count = self._open() if opening else self._take_changes()
            # Changes committed after `version` was read are read again next time.
            self._seq = version
            if opening and self._background and self._state.words.index.waiting > MUCH:
                self._write_words()
            self._settle_if_due()
            return changed_count

    def _open(self) -> int:
        """Read everything: on the first query, or if the database was restored from a backup."""
        state = self._state
        state.rows = MemoryRows()
        stored_snapshot = self._snapshot.read()
        state.rows.load(self._records, stored_snapshot)
        self._known_snapshot = replace(stored_snapshot, columns={})
        if not stored_snapshot.blocks or self._records.tombstones_since(stored_snapshot.seq, 1):
            self._lose_snapshot()
        state.filters.forget()
        state.words = self._make_words()
        self._folder.remove_foreign()
        if self._folder.littered():
            with try_lock(self._directory, "words.lock") as is_locked:
                if is_locked:
                    self._folder.sweep()
        manifest, words = self._folder.read(), state.words.index
        is_open = self._open_words(words, manifest, self._records.version())
        for records in self._changed_since(manifest.upto if is_open else -1):
            for record in records:
                row = state.rows.row(record.id)
                if row >= 0:
                    words.put(row, self._document(record))
        self._put_missing()
        words.purge()
        state.vectors.load(state.rows)
        return len(state.rows)

    def take(self, written: WrittenRecords) -> None:
        """Index records that this process has just written, so that `sync` need not read them.

        If anything else was written since, or the index is not open yet, it is left to `sync`.
        """
        with self._lock:
            if self._closed or self._seq != written.before:
                return
            self._index_records(written.records)
            self._state.vectors.take(self._state.rows, written)
            self._purge_files()
            self._seq = written.after
            self._settle_if_due()

    def _index_records(self, records: Sequence[MemoryRecord]) -> None:
        state = self._state
        rows = state.rows.put_records(records)
        state.filters.changed(state.rows, records)
        for row, record in zip(rows, records, strict=True):
            state.words.index.put(row, self._document(record))

    def _settle_if_due(self) -> None:
        if not self._background:
            return
        words = self._state.words.index
        room = max(TAIL_LIMIT, words.manifest.meta.count // TAIL_SHARE)
        if words.waiting > room or words.stale or self._state.vectors.due():
            self._worker.begin(self._settle_in_background)

    def _take_changes(self) -> int:
        state, changed_count = self._state, 0
        for records in self._changed_since(self._seq):
            changed_count += len(records)
            self._index_records(records)
        tombstones = self._records.tombstones_since(self._seq)
        if tombstones:
            self._lose_snapshot()
        for seq, record_id in tombstones:
            row = state.rows.delete(record_id, seq)
            if row >= 0:
                changed_count += 1
                state.words.index.drop(row)
                state.vectors.drop(row)
        state.vectors.sync(state.rows)
        self._purge_files()
        return changed_count

    def _purge_files(self) -> None:
        """Remove deleted and replaced memories from the disk."""
        self._state.words.index.purge()
        self._state.vectors.purge(self._state.rows)

    def _changed_since(self, seq: int) -> Iterator[Sequence[MemoryRecord]]:
        while records := self._records.changed_since(seq, _STEP):
            yield records
            seq = records[-1].seq

    # Queries.

    def __len__(self) -> int:
        """How many memories there are, including past ones."""
        with self._lock:
            return self._state.rows.known()

    def candidates(self, query: MemoryQuery) -> Candidates:
        """Up to `limit` memories by meaning and as many by words, of those that may be shown."""
        return self._answer(lambda: self._state.candidates(query, self._seq))

    def related(self, query: MemoryQuery, words: Sequence[Word], to: str) -> Related:
        """The `limit` memories that share most of `words`, scored for `query`.

        Each has its closeness to the memory `to`.
        """
        return self._answer(lambda: self._state.related(query, words, to, self._seq))

    def matching(self, terms: Sequence[Word], limit: int) -> tuple[str, ...]:
        """The ids of the best memories with any of the terms, including past ones."""

        def find() -> tuple[str, ...]:
            state = self._state
            rows, _, _ = state.words.best(state.words.look_up(terms), limit)
            return tuple(state.rows.ids[row] for row in rows.tolist())

        return self._answer(find)

    def excluded(self, query: MemoryQuery) -> Candidates:
        """The candidates if all memories could be shown, each with why it may not be."""
        return self._answer(lambda: self._state.excluded(query))

    def neighbours(
        self, vectors: NDArray[np.float32], closer: float, limit: int = 8
    ) -> list[list[tuple[str, float]]]:
        """For each unit vector (n, dimensions), current memories with at least this cosine.

        Each is (id, cosine), the closest first, at most `limit`.
        """

        def find() -> list[list[tuple[str, float]]]:
            rows = self._state.rows

            def are_current(close: NDArray[np.int64]) -> NDArray[np.bool_]:
                is_standing = rows.column("valid_until")[close] == NEVER
                current: NDArray[np.bool_] = is_standing & (rows.column("state")[close] == CURRENT)
                return current

            hits_by_vector = self._state.vectors.close_to(vectors, are_current, closer, limit)
            return [[(rows.ids[row], cosine) for row, cosine in hits] for hits in hits_by_vector]

        return self._answer(find)

    def visible(self, record_ids: Sequence[str], moment: datetime, *, past: bool) -> set[str]:
        """Which of these memories may be shown at `moment`."""
        with self._lock:
            rows = self._state.rows
            rows_ = rows.rows(record_ids)
            existing = np.flatnonzero(rows_ >= 0)
            visible_positions = existing[rows.visible(Moment(moment, past), rows_[existing])]
            return {record_ids[at] for at in visible_positions.tolist()}

    def _answer(self, find: Callable[[], ResultT]) -> ResultT:
        """Catch up and answer; if the ANN index cannot be read, do without it."""
        with self._lock:
            for _ in range(_ROUNDS):
                self.sync()
                try:
                    return find()
                except IndexLost as error:
                    self._state.vectors.lose_ann(self._state.rows, str(error))
            return find()

    # The disk.

    def settle(self, *, vectors: bool = True) -> bool:
        """Write what is only in memory; False if another process writes or the disk refuses.

        `vectors`: also move vectors beyond the cap to LanceDB.
        """
        is_settled = self._write_words()
        if vectors and self._state.vectors.over_cap():
            is_settled = self._write_vectors() and is_settled
        return is_settled

    def purge(self) -> None:
        """Catch up with the database; on return, forgotten words have left the files.

        Files with forgotten words are removed, and made again in the background. A running rewrite
        is stopped: it would bring such words back until the next one.
        """
        with self._purging:
            self._cut_short.set()
            self._at_once.set()
            try:
                self._worker.wait()
            finally:
                self._cut_short.clear()
                self._at_once.clear()
            self.sync()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the background to end; False if it takes longer than `timeout` seconds."""
        self._at_once.set()
        try:
            return self._worker.wait(timeout) and self._state.vectors.wait(timeout)
        finally:
            self._at_once.clear()

    def close(self) -> None:
        """End the background and write what is worth writing. Safe to call twice."""
        self._worker.stopping.set()
        self._at_once.set()
        self._worker.stop()
        with self._lock:
            self._state.vectors.close()
            if self._closed:
                return
            words = self._state.words.index
            worth = words.waiting > _TAIL_AT_CLOSE or words.stale
        if worth:
            self._write_words()
        with self._lock:
            self._write_snapshot()
            self._closed = True

    def _write_snapshot(self) -> None:
        """Write the columns for the next opening, if it would have much to read without them."""
        rows = self._state.rows
        count = rows.known()
        if count < WORTH_KEEPING or rows.unread(self._known_snapshot) * UNREAD_SHARE <= count:
            return
        with try_lock(self._directory, "rows.lock") as is_locked:
            if is_locked and self._snapshot.write(rows.snapshot(self._seq)):
                # A process that forgets a memory removes the snapshot that exists by then; one
                # forgotten while this was written is found here.
                with suppress(AnaphoraError):
                    if not self._records.tombstones_since(self._seq, 1):
                        return
                self._lose_snapshot()

    def _lose_snapshot(self) -> None:
        """Remove the snapshot: no trace of a forgotten memory may stay on disk, even its time."""
        self._snapshot.remove()
        self._known_snapshot = RowsSnapshot()

    def _settle_in_background(self) -> None:
        # Memories are often forgotten one after another, and each would stop the last rewrite.
        if self._state.words.index.stale:
            self._at_once.wait(PAUSE)
        if self._cut_short.is_set() or self._worker.stopping.is_set():
            return
        # If it cannot be written, memory answers, and a later change tries again.
        with suppress(AnaphoraError):
            self.settle(vectors=self._state.vectors.due())

    def _write_words(self) -> bool:
        with try_lock(self._directory, "words.lock") as is_locked:
            if not is_locked:
                return False
            with self._lock:
                words, upto = self._state.words.index, self._seq
                on_disk = self._folder.read()
                if on_disk.meta.generation and on_disk.meta != words.manifest.meta:
                    # Another process has written meanwhile.
                    self._go_on_from(words, on_disk)
                base, rewritten = self._plan_rewrite(words, on_disk)
                waiting = words.documents()
            if (
                not waiting
                and not rewritten
                and base.parts
                and len(base.parts) == len(on_disk.parts)
            ):
                return True
            documents = self._read_documents(rewritten)
            if documents is None:
                return False
            # If all memories were read, the waiting ones are among them.
            waiting = documents if rewritten is None else documents + waiting
            new_manifest = self._folder.write(base, upto, waiting, self._cut_short.is_set)
            if new_manifest is None:
                return False
            with self._lock:
                # Read again: the index may have been opened anew meanwhile.
                words = self._state.words.index
                is_readable = self._go_on_from(words, new_manifest)
                words.purge()
                return is_readable

    def _plan_rewrite(
        self, words: WordIndex, on_disk: WordManifest
    ) -> tuple[WordManifest, list[str] | None]:
        """The manifest of what stays on disk, and the ids to write again; None for all ids."""
        if on_disk.meta.generation and on_disk.meta == words.manifest.meta:
            with suppress(*WORD_INDEX_ERRORS):
                return words.rest()
        # If nothing on disk was used, all documents are waiting, analysed already.
        return WordManifest(), None if self._seq < 0 or words.manifest.meta.generation else []

    def _read_documents(self, ids: Sequence[str] | None) -> list[IndexedDocument] | None:
        """The documents of these memories, or of all; None if stopped, or the seal has changed."""
        documents = []
        with suppress(SealChanged):
            batches = self._changed_since(-1) if ids is None else self._read_records(ids)
            for record in chain.from_iterable(batches):
                if self._cut_short.is_set():
                    return None
                documents.append(self._document(record))
            return documents
        return None

    def _read_records(self, ids: Sequence[str]) -> Iterator[Sequence[MemoryRecord]]:
        for at in range(0, len(ids), _STEP):
            yield tuple(self._records.many(ids[at : at + _STEP]).values())

    def _go_on_from(self, words: WordIndex, manifest: WordManifest) -> bool:
        """Answer from the words that were just written; False if they cannot be read."""
        is_readable = self._open_words(words, manifest, self._seq)
        with suppress(SealChanged):
            self._put_missing()
        return is_readable

    def _put_missing(self) -> None:
        """Index words that are missing on disk: they were in parts with forgotten memories."""
        rows, words = self._state.rows, self._state.words.index
        missing = words.find_missing(np.flatnonzero(rows.column("state") != GONE))
        for record in chain.from_iterable(
            self._read_records([rows.ids[row] for row in missing.tolist()])
        ):
            words.put(rows.row(record.id), self._document(record))

    def _document(self, record: MemoryRecord) -> IndexedDocument:
        title = self._title_of(record)
        return document_in_language(record.id, record.text, self._term_of, title=title)

    def _open_words(self, words: WordIndex, manifest: WordManifest, known_upto: int) -> bool:
        rows = self._state.rows
        # Each id is one string object, shared by rows and manifest.
        manifest = replace(manifest, ids=rows.own(manifest.ids))
        return words.open(manifest, rows.row, known_upto)

    def _make_words(self) -> MemoryWords:
        return MemoryWords(WordIndex(self._folder, self._term_of))

    def _write_vectors(self) -> bool:
        with try_lock(self._directory, "ann.lock") as is_locked:
            if not is_locked:
                return False
            with self._lock:
                upto = self._state.vectors.upto
            try:
                self._state.vectors.write_ann(upto)
            except ANN_ERRORS:
                return False
            with self._lock:
                self._state.vectors.load(self._state.rows)
            return True
