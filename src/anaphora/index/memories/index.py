"""The index of memories: syncs with truth by its numbers, answers by meaning, words and filters.

In: the records and vectors of one namespace, a directory for what is worth keeping on disk. Out:
candidates for a question, as columns. What was acknowledged before a question, by any process, is
in its answer: asking whether anything changed costs one small read. It never writes truth, never
embeds, and holds no text; its directory can vanish or be torn at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import AnaphoraError, Closed, SealChanged
from anaphora.index.maintenance import Background, IndexLost, try_lock
from anaphora.index.memories.filters import MemoryFilters
from anaphora.index.memories.rows import NEVER, MemoryRows, Moment
from anaphora.index.memories.state import Candidates, MemoryQuery, MemoryState
from anaphora.index.memories.vectors import DEFAULT_CAP, MemoryVectors
from anaphora.index.memories.words import (
    Bulk,
    CutShort,
    Document,
    MemoryWords,
    document_of,
    read_bulk,
    remove,
    remove_foreign,
    write_bulk,
)
from anaphora.index.vectors.ann import ANN_ERRORS
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import MemoryRecord

__all__ = ["Candidates", "MemoryIndex", "MemoryQuery"]

TAIL_LIMIT = 500
"""Texts whose words are in memory alone before they are written to the disk."""

TAIL_SHARE: Final = 64
"""Where that is more: the share of all texts. A write reads and lists all that are on the disk."""

MUCH: Final = 20_000
"""Texts that are written before the first answer: by word, a million of them fill gigabytes."""

_TAIL_AT_CLOSE = 100
_STEP = 4096
_ROUNDS = 3
ResultT = TypeVar("ResultT")


class MemoryIndex:
    """The memories of one namespace. Cheap to make: it opens with its first use.

    Safe to use from several threads; any number of processes may share `directory`. `embedder` is
    the (name, dimensions) of the vectors that are compared. `cap` is how many parts are scanned in
    memory before LanceDB holds the bulk (0: always, None: never: it keeps vectors in clear).
    `sealer` says what may lie on disk in the place of a token. `background` False leaves writing
    to `settle`.
    """

    def __init__(
        self,
        directory: Path,
        records: Records,
        vectors: RecordVectors,
        embedder: tuple[str, int],
        *,
        cap: int | None = DEFAULT_CAP,
        sealer: IndexSealer = CLEAR_INDEX,
        background: bool = True,
    ) -> None:
        self._directory = Path(directory)
        self._records = records
        self._sealer = sealer
        self._term = sealer.token_key if sealer.sealed else None
        self._background = background
        self._lock = threading.RLock()
        self._words_folder = self._directory / "words"
        self._state = MemoryState(
            records,
            MemoryRows(),
            MemoryFilters(),
            MemoryWords(self._words_folder, self._term, sealer.mark),
            MemoryVectors(
                self._directory / "ann", records, vectors, embedder, cap, background=background
            ),
        )
        self._seq = -1
        self._worker = Background("anaphora-memory-index", self._lock)
        self._purging = threading.Lock()
        self._cut_short = threading.Event()
        self._closed = False

    # Following.

    def sync(self) -> int:
        """Catch up with truth; how many memories are new or changed."""
        with self._lock:
            if self._closed:
                raise Closed
            version = self._records.version()
            if version == self._seq:
                return 0
            opening = not 0 <= self._seq < version
            changed = self._open() if opening else self._take_changes()
            # What was committed after `version` was read is looked at again next time.
            self._seq = version
            if opening and self._background and self._state.words.waiting > MUCH:
                self._write_words()
            if self._background and (self._words_due() or self._state.vectors.due()):
                self._worker.begin(self._settle_in_background)
            return changed

    def _open(self) -> int:
        """Read everything: with the first question, or when truth was put back (a restore)."""
        state = self._state
        state.rows = MemoryRows()
        state.rows.load(self._records)
        state.filters.forget()
        state.words = MemoryWords(self._words_folder, self._term, self._sealer.mark)
        remove_foreign(self._words_folder, self._sealer.mark)
        bulk = read_bulk(self._words_folder, self._sealer.mark)
        good = state.words.open(bulk, state.rows.row, self._records.version())
        for record in self._changed_since(bulk.upto if good else -1):
            row = state.rows.row(record.id)
            if row >= 0:
                state.words.put(row, self._document(record))
        state.words.purge()
        state.vectors.load(state.rows)
        return len(state.rows)

    def _take_changes(self) -> int:
        state, changed = self._state, 0
        for record in self._changed_since(self._seq):
            changed += 1
            (row,) = state.rows.put([record])
            state.filters.changed(state.rows, [record])
            state.words.put(row, self._document(record))
        for seq, record_id in self._records.tombstones_since(self._seq):
            row = state.rows.delete(record_id, seq)
            if row >= 0:
                changed += 1
                state.words.drop(row)
                state.vectors.drop(row)
        state.vectors.sync(state.rows)
        state.words.purge()
        state.vectors.purge(state.rows)
        return changed

    def _changed_since(self, seq: int) -> Iterator[MemoryRecord]:
        while found := self._records.changed_since(seq, _STEP):
            yield from found
            seq = found[-1].seq

    # Answers.

    def __len__(self) -> int:
        """How many memories there are, in history too."""
        with self._lock:
            return int((self._state.rows.column("alive") >= 0).sum())

    def candidates(self, wanted: MemoryQuery) -> Candidates:
        """Up to `limit` memories by meaning and as many by words, of those that may be shown."""
        return self._answer(lambda: self._state.candidates(wanted, self._seq))

    def matching(self, terms: Sequence[str], limit: int) -> tuple[str, ...]:
        """The ids of memories that hold any of the terms, past ones too: the best of them."""

        def find() -> tuple[str, ...]:
            state = self._state
            found, _, _ = state.words.best(state.words.weights(terms), limit)
            return tuple(state.rows.ids[row] for row in found.tolist())

        return self._answer(find)

    def excluded(self, wanted: MemoryQuery) -> Candidates:
        """The candidates there would be if all might be shown, each with why it may not."""
        return self._answer(lambda: self._state.excluded(wanted))

    def neighbours(
        self, vectors: NDArray[np.float32], *, closer: float = 0.8, limit: int = 8
    ) -> list[list[tuple[str, float]]]:
        """For each unit vector (n, dimensions), current memories of at least this cosine.

        Each is (id, cosine), the closest first, at most `limit`.
        """

        def find() -> list[list[tuple[str, float]]]:
            rows = self._state.rows

            def current(some: NDArray[np.int64]) -> NDArray[np.bool_]:
                alive = rows.column("alive")[some] == 1
                found: NDArray[np.bool_] = alive & (rows.column("valid_until")[some] == NEVER)
                return found

            near = self._state.vectors.close_to(vectors, current, closer, limit)
            return [[(rows.ids[row], cosine) for row, cosine in one] for one in near]

        return self._answer(find)

    def standing(self, record_ids: Sequence[str], moment: datetime, *, past: bool) -> set[str]:
        """Which of these memories may be shown at `moment`."""
        with self._lock:
            rows, when = self._state.rows, Moment(moment, past)
            places = zip(record_ids, rows.rows(record_ids).tolist(), strict=True)
            return {i for i, row in places if row >= 0 and not rows.why_not(row, when)}

    def _answer(self, find: Callable[[], ResultT]) -> ResultT:
        """Follow and answer; where the bulk of vectors cannot be read, do without it."""
        with self._lock:
            for _ in range(_ROUNDS):
                self.sync()
                try:
                    return find()
                except IndexLost as error:
                    self._state.vectors.lose_bulk(self._state.rows, str(error))
            return find()

    # The disk.

    def settle(self, *, vectors: bool = True) -> bool:
        """Write what is only in memory; False where another process is writing or disk refuses.

        `vectors` sends vectors to LanceDB where the cap says that they belong there.
        """
        done = self._write_words()
        if vectors and self._state.vectors.over_cap():
            done = self._write_vectors() and done
        return done

    def purge(self) -> None:
        """Follow truth; when this returns, words that were forgotten have left the files.

        Files that hold any are removed, and made again behind this call. A rewrite that began
        before is cut short: it would bring such words back for as long as it lasts.
        """
        with self._purging:
            self._cut_short.set()
            try:
                self._worker.wait()
            finally:
                self._cut_short.clear()
            self.sync()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the background to end; False when something took longer than `timeout` s."""
        return self._worker.wait(timeout) and self._state.vectors.wait(timeout)

    def close(self) -> None:
        """End the background, write what is worth writing, let go. Safe to call twice."""
        self._worker.stop()
        with self._lock:
            self._state.vectors.close()
            if self._closed:
                return
            worth = self._state.words.waiting > _TAIL_AT_CLOSE or self._state.words.stale
        if worth:
            self._write_words()
        with self._lock:
            self._closed = True

    def _words_due(self) -> bool:
        words = self._state.words
        room = max(TAIL_LIMIT, words.bulk.meta.count // TAIL_SHARE)
        return words.waiting > room or words.stale

    def _settle_in_background(self) -> None:
        # What cannot be written stays in memory and answers from there; a later change tries again.
        with suppress(AnaphoraError):
            self.settle(vectors=self._state.vectors.due())

    def _write_words(self) -> bool:
        with try_lock(self._directory, "words.lock") as held:
            if not held:
                return False
            with self._lock:
                words, upto = self._state.words, self._seq
                on_disk = read_bulk(self._words_folder, self._sealer.mark)
                if on_disk.meta.generation and on_disk.meta != words.bulk.meta:
                    # Another process has written meanwhile.
                    words.open(on_disk, self._state.rows.row, self._seq)
                whole = words.stale or on_disk.meta != words.bulk.meta
                whole = whole or not on_disk.meta.generation
                seen, fresh = words.bulk, words.documents()
            if not whole and not fresh:
                return True
            # Where nothing was on the disk for us, what waits is all there is, analysed already.
            again = whole and (upto < 0 or bool(seen.meta.generation))
            written = self._written(Bulk() if whole else seen, upto, None if again else fresh)
            if written is None:
                return False
            with self._lock:
                # The index was opened anew meanwhile where these are not the same words.
                good = self._state.words.open(written, self._state.rows.row, self._seq)
                self._state.words.purge()
                return good

    def _written(self, seen: Bulk, upto: int, fresh: list[Document] | None) -> Bulk | None:
        """Write documents, or all there are; None where the disk or the home's seal refuses."""
        key_tag = self._sealer.mark
        try:
            documents = self._all_documents() if fresh is None else fresh
            self._records.check()
            stop = None if seen.meta.generation else self._cut_short
            written = write_bulk(self._words_folder, seen, upto, documents, key_tag, stop)
        except (SealChanged, CutShort):
            return None
        try:
            self._records.check()
        except SealChanged:
            # Words of the old form must not stay in a home that was sealed meanwhile.
            if written is not None:
                remove(self._words_folder, written.meta.generation, key_tag)
            return None
        return written

    def _all_documents(self) -> list[Document]:
        found = []
        for record in self._changed_since(-1):
            if self._cut_short.is_set():
                raise CutShort
            found.append(self._document(record))
        return found

    def _document(self, record: MemoryRecord) -> Document:
        return document_of(record.id, record.text, self._term)

    def _write_vectors(self) -> bool:
        with try_lock(self._directory, "ann.lock") as held:
            if not held:
                return False
            with self._lock:
                upto = self._state.vectors.upto
            try:
                self._state.vectors.write_bulk(upto)
            except ANN_ERRORS:
                return False
            with self._lock:
                self._state.vectors.load(self._state.rows)
            return True
