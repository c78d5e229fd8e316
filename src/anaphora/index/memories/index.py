"""The index of memories: follows the database by its numbers, queried by vector, words, filters.

Memories that any process stored before a query are in its answer: checking for changes takes one
small read. Nothing is embedded here and no text stays in memory; the directory can vanish or be
torn at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import AnaphoraError
from anaphora.index.life_cycle import IndexLife
from anaphora.index.memories.filters import MemoryFilters
from anaphora.index.memories.links import MemoryLinks
from anaphora.index.memories.rows import NEVER, MemoryRows, Moment
from anaphora.index.memories.state import Candidates, MemoryQuery, MemoryState
from anaphora.index.memories.vectors import MemoryVectors
from anaphora.index.memories.words import MemoryWords
from anaphora.index.rows import CURRENT, GONE
from anaphora.index.vectors.ann import ANN_ERRORS
from anaphora.index.words.documents import IndexedDocument, analyse_text
from anaphora.index.words.index import WordIndex, best_of
from anaphora.index.words.lookup import Word
from anaphora.index.words.table import DocumentTable, StoredDocument
from anaphora.rank.statements import READING, keep_reading
from anaphora.settings import EXACT_CAP
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.records.rows import CLOSENESS
from anaphora.store.records.store import Records
from anaphora.store.records.titles import record_title
from anaphora.store.records.vectors import RecordVectors
from anaphora.store.records.written import WrittenRecords
from anaphora.text.recalled import quotes_recalled
from anaphora.text.shown_times import in_shown_zone
from anaphora.values.memories import MemoryRecord

TAIL_LIMIT = 500
"""Texts with words in memory only before they are written to disk."""

MUCH: Final = 20_000
"""Texts that are read ahead at once."""

_SURE: Final = 16
"""Of the newest memories on disk so many are made again when it is opened, to be sure of it."""

_READ_AT_ONCE: Final = 8
"""Memories that are read in the background between two rests: some 2 ms, which a call waits."""

_REST: Final = 0.01
"""Seconds of a rest, in which calls go on."""

_QUIET: Final = 50
"""Rests without a change before it begins: an import is not slowed down."""

_TAIL_AT_CLOSE = 50
_STEP = 1024
# Of so many memories that have all words of a text, it is quicker to look at the texts of all.
_MANY = 400
ResultT = TypeVar("ResultT")


class MemoryIndex:
    """The memories of one namespace. Cheap to make: it opens on first use.

    Thread-safe; any number of processes may share `directory`. `embedder` is the (name, dimensions)
    of the vectors that are compared. `cap` is how many parts are scanned in memory before LanceDB
    stores them (0: always, None: never, since it stores vectors in clear). `sealer` replaces tokens
    on disk. With `background` False, only `settle` writes. `title_of` gives the title of a record.
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
    ) -> None:
        directory = Path(directory)
        self._title_of = title_of
        self._records = records
        self._term_of = sealer.token_key if sealer.sealed else None
        self._table = DocumentTable(directory, sealer, READING, records.sealer.check)
        self._state = MemoryState(
            records,
            MemoryRows(),
            MemoryFilters(),
            MemoryWords(WordIndex(self._table, self._term_of)),
            MemoryVectors(directory / "ann", vectors, embedder, cap),
        )
        self._is_reading = Event()
        # Up to which number of the database all that was forgotten has left the disk.
        self._purged = -1
        self._life = IndexLife(
            "anaphora-memory-index",
            directory,
            mend=self._lose_ann,
            finish=self._finish,
            let_go=self._table.close,
            background=background,
        )

    # Following the database.

    def sync(self) -> int:
        """Catch up with the database; how many memories are new or changed."""
        return self._life.catch_up(
            self._records.version,
            lambda since: self._open() if since < 0 else self._take_changes(since),
            self._caught_up,
        )

    def _caught_up(self, since: int) -> None:
        if self._is_due() or (since < 0 and len(self._find_unread(TAIL_LIMIT)) >= TAIL_LIMIT):
            self._life.begin(self._work_in_background)

    def _open(self) -> int:
        """Read everything: on the first query, or if the database was restored from a backup."""
        state = self._state
        state.rows = MemoryRows()
        state.rows.load(self._records)
        state.filters.forget()
        state.words = MemoryWords(WordIndex(self._table, self._term_of))
        words = state.words.index
        words.open(state.rows.row, state.rows.marks())
        words.purge()
        rows = np.flatnonzero(state.rows.column("state") != GONE)
        missing = words.find_missing(rows).tolist()
        newest = np.setdiff1d(rows, missing)
        newest = newest[np.argsort(state.rows.column("seq")[newest])][-_SURE:]
        if self._put_words(self._records.many([state.rows.ids[row] for row in newest]).values()):
            # A database that was put back has gone on otherwise: any of them may be another one.
            missing = rows.tolist()
        for first in range(0, len(missing), _STEP):
            ids = [state.rows.ids[row] for row in missing[first : first + _STEP]]
            self._put_words(self._records.many(ids).values())
            if len(missing) > TAIL_LIMIT and self._life.background:
                self._write_words()
        state.vectors.load(state.rows)
        self._take_links(-1)
        return len(state.rows)

    def take(self, written: WrittenRecords) -> None:
        """Index records that this process has just written, so that `sync` need not read them.

        If anything else was written since, or the index is not open yet, it is left to `sync`.
        """
        with self._life.lock:
            if self._life.closed or self._life.seq != written.before:
                return
            self._index_records(written.records)
            self._state.links.put(self._state.rows, written.links)
            self._state.vectors.take(self._state.rows, written)
            self._purge_files()
            self._life.seq = self._life.upto = written.after
            self._settle_if_due()

    def _index_records(self, records: Sequence[MemoryRecord]) -> None:
        state = self._state
        state.rows.put_records(records)
        state.filters.changed(state.rows, records)
        self._put_words(records)

    def _put_words(self, records: Collection[MemoryRecord]) -> int:
        """Index the words of memories; of how many known ones these changed."""
        records = [record for record in records if self._state.rows.row(record.id) >= 0]
        rows = self._state.rows.rows([record.id for record in records])
        return self._state.words.index.put_all(
            {
                row: StoredDocument(record.id, mark, self._analyse(record))
                for record, row, mark in zip(
                    records, rows.tolist(), self._state.rows.marks(rows).tolist(), strict=True
                )
            }
        )

    def _settle_if_due(self) -> None:
        if self._is_due():
            self._life.begin(self._work_in_background)

    def _is_due(self) -> bool:
        return self._state.words.index.due > TAIL_LIMIT or self._state.vectors.due()

    def _take_changes(self, since: int) -> int:
        state, changed_count = self._state, 0
        for records in self._changed_since(since):
            changed_count += len(records)
            self._index_records(records)
        tombstones = self._records.tombstones_since(since)
        for seq, record_id in tombstones:
            row = state.rows.delete(record_id, seq)
            if row >= 0:
                changed_count += 1
                state.words.index.drop(row, record_id)
                state.vectors.drop(row)
        # Deleted ones that came back since are without the links that they had.
        came_back = any(state.rows.row(record_id) >= 0 for _, record_id in tombstones)
        self._take_links(-1 if came_back else since)
        state.vectors.sync(state.rows)
        # Another process may just be writing one that this one has never seen.
        state.words.index.forget(key for _, key in tombstones if state.rows.row(key) < 0)
        if self._purge_files() and self._purged >= since:
            self._purged = self._life.upto
        return changed_count

    def _take_links(self, since: int) -> None:
        if since < 0:
            self._state.links = MemoryLinks()
        # Notes and tool calls have none, and most homes have no notes.
        if len(self._state.rows):
            self._state.links.put(self._state.rows, self._records.links_since(since, CLOSENESS))

    def _purge_files(self) -> bool:
        """Remove deleted memories from the disk, unless it is in use there; whether words are."""
        self._state.vectors.purge(self._state.rows)
        return self._state.words.index.purge()

    def _changed_since(self, seq: int) -> Iterator[Sequence[MemoryRecord]]:
        while records := self._records.changed_since(seq, _STEP):
            yield records
            seq = records[-1].seq

    # Queries.

    def __len__(self) -> int:
        """How many memories there are, including past ones."""
        with self._life.lock:
            return self._state.rows.known()

    def candidates(self, query: MemoryQuery, version: int | None = None) -> Candidates:
        """Up to `limit` memories by meaning and as many by words, of those that may be shown.

        `version` is a number that the database had in this call: with it nothing is new.
        """
        vector = query.vector
        with nullcontext() if vector is None else self._state.vectors.waiting(vector):
            return self._answer(lambda: self._state.candidates(query, self._life.seq), version)

    def readings_of(self, record_ids: Sequence[str]) -> list[str]:
        """What was read of each memory (`keep_reading`), "" where that is not on disk."""
        with self._life.lock:
            return self._table.readings(record_ids)

    def fetch(self, query: MemoryQuery, record_ids: Collection[str]) -> Candidates:
        """Those of these memories that may be shown, scored for `query`, however far they are."""
        return self._answer(lambda: self._state.fetch(query, record_ids, self._life.seq))

    def closeness(self, record_id: str, others: Sequence[str]) -> list[float]:
        """The cosine of a memory's first vector to that of each of others (NaN: unknown)."""
        return self._answer(lambda: self._state.closeness(record_id, others))

    def matching(self, terms: Sequence[Word], limit: int) -> tuple[str, ...]:
        """The ids of the best memories with any of the terms, including past ones."""

        def find() -> tuple[str, ...]:
            state = self._state
            matches = state.words.match(state.words.look_up(terms))
            rows, _ = best_of(matches.rows, matches.shares, limit)
            return tuple(state.rows.ids[row] for row in rows.tolist())

        return self._answer(find)

    def with_text(self, text: str) -> tuple[str, ...]:
        """The ids of all memories, past ones too, with exactly this text."""

        terms = analyse_text(text, self._term_of).terms

        def find() -> list[str]:
            rows = self._state.words.index.with_all(terms)
            return [self._state.rows.ids[row] for row in rows.tolist()]

        ids = self._answer(find)
        if not len(terms) or len(ids) > _MANY:
            return self._records.with_text(text)
        records = self._records.many(ids).values()
        return tuple(sorted(record.id for record in records if record.text == text))

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

    def statements(
        self, moment: datetime
    ) -> tuple[list[str], NDArray[np.int64], NDArray[np.bool_]]:
        """The memories that hold at a moment: ids, columns (n, 3), whether they have a vector.

        The columns are number, time of noting and time of the last restating, in microseconds.
        """

        def find() -> tuple[list[str], NDArray[np.int64], NDArray[np.bool_]]:
            rows, vectors = self._state.rows, self._state.vectors
            visible_rows = np.flatnonzero(rows.visible(Moment(moment)))
            names = ("seq", "created", "reinforced_at")
            columns = np.stack([rows.column(name)[visible_rows] for name in names], axis=1)
            return (
                [rows.ids[row] for row in visible_rows.tolist()],
                columns,
                vectors.having(visible_rows),
            )

        return self._answer(find)

    def first_parts(self, record_ids: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """The vector of each memory, of a long one that of its beginning; None without one."""

        def find() -> list[NDArray[np.float32] | None]:
            rows, vectors = self._state.rows.rows(record_ids), self._state.vectors
            return [
                vectors.first_part(row) if row >= 0 and vectors.having(rows[at : at + 1]) else None
                for at, row in enumerate(rows.tolist())
            ]

        return self._answer(find)

    def nearness(
        self,
        vector: NDArray[np.float32],
        terms: Sequence[Word],
        worth: float,
        record_ids: Sequence[str],
    ) -> NDArray[np.float64]:
        """How near these are to a statement, shape (n,): cosine, and `worth` × words in common.

        Those are the share of its words, by their weights, 0 … 1. One that is gone has -inf.
        """

        def find() -> NDArray[np.float64]:
            rows, words = self._state.rows.rows(record_ids), self._state.words
            nearness = self._state.vectors.cosines(vector, rows)
            nearness += worth * words.match(words.look_up(terms)).of(rows)
            nearness[rows < 0] = -np.inf
            return nearness

        return self._answer(find)

    def links(self, record_id: str) -> list[tuple[str, str]]:
        """The ids linked with this one, each with the kind, as last read: the closest first."""
        with self._life.held():
            return self._state.links.of(self._state.rows, record_id)

    def visible(self, record_ids: Sequence[str], moment: datetime, *, past: bool) -> set[str]:
        """Which of these memories may be shown at `moment`."""
        with self._life.lock:
            rows = self._state.rows
            rows_ = rows.rows(record_ids)
            existing = np.flatnonzero(rows_ >= 0)
            visible_positions = existing[rows.visible(Moment(moment, past), rows_[existing])]
            return {record_ids[at] for at in visible_positions.tolist()}

    def _answer(self, find: Callable[[], ResultT], version: int | None = None) -> ResultT:
        """Catch up and answer; if the ANN index cannot be read, do without it."""

        def answer() -> ResultT:
            if version != self._life.seq:
                self.sync()
            return find()

        return self._life.use(answer)

    def _lose_ann(self, error: Exception) -> None:
        self._state.vectors.lose_ann(self._state.rows, str(error))

    # The disk.

    def settle(self, *, vectors: bool = True) -> bool:
        """Write what is only in memory; False if another process writes or the disk refuses.

        `vectors`: also move vectors beyond the cap to LanceDB.
        """
        is_settled = self._life.use(self._write_words)
        if vectors and self._state.vectors.over_cap():
            is_settled = self._write_vectors() and is_settled
        return is_settled

    def read_ahead(self) -> bool:
        """Read what is on disk, so that no question has to; rests let calls go on.

        False if there is more to read, or something changed before it was done.
        """
        with self._life.lock:
            seq, unread = self._life.seq, self._find_unread(MUCH)
        for at in range(0, len(unread), _READ_AT_ONCE):
            if self._is_ending(_REST):
                return True
            if self._life.seq != seq:
                return False
            records = self._records.many(unread[at : at + _READ_AT_ONCE])
            readings = dict.fromkeys(unread[at : at + _READ_AT_ONCE], "") | {
                record.id: keep_reading(record.text)
                for record in records.values()
                if not quotes_recalled(record.text)
            }
            with self._life.lock:
                if not self._table.keep_readings(readings):
                    return True
        return len(unread) < MUCH

    def purge(self) -> None:
        """Catch up with the database; on return, forgotten words have left the files.

        Raises `StoreError` if the disk refuses.
        """
        with self._life.held():
            self.sync()
            tombstones = self._records.tombstones_since(self._purged)
            rows, words = self._state.rows, self._state.words.index
            words.forget(key for _, key in tombstones if rows.row(key) < 0)
            words.purge_surely()
            self._purged = self._life.seq

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all that is due is written; False if it takes longer than `timeout` seconds.

        What is read ahead may still be read.
        """
        waited = 0.0
        while self._is_due() or not self._is_reading.is_set():
            if self._life.worker.wait(_REST):
                return True
            waited += _REST
            if timeout is not None and waited >= timeout:
                return False
        return True

    def close(self) -> None:
        """End the background and write what is worth writing. Safe to call twice."""
        self._life.close()

    def _finish(self) -> None:
        with self._life.lock:
            if self._state.words.index.due > _TAIL_AT_CLOSE:
                self._write_words()

    def _work_in_background(self) -> None:
        # If it cannot be written, memory answers, and a later change tries again.
        with suppress(AnaphoraError):
            while not self._is_ending():
                self._is_reading.clear()
                if self._is_due():
                    self._life.work_in_steps(
                        lambda: self._state.words.index.write_some(self._list_changed)
                    )
                    if self._state.vectors.due():
                        self._write_vectors()
                if self._is_due() or not self._find_unread(1):
                    break
                self._is_reading.set()
                if self._wait_for_quiet() and self.read_ahead():
                    break
        self._is_reading.clear()

    def _wait_for_quiet(self) -> bool:
        """Wait until nothing changes for a while; False if writing is due or the end comes."""
        seq, rests = self._life.seq, 0
        while rests < _QUIET:
            if self._is_ending(_REST) or self._is_due():
                return False
            seq, rests = self._life.seq, rests + 1 if self._life.seq == seq else 0
        return True

    def _is_ending(self, rest: float = 0.0) -> bool:
        """Whether the background is to end at once, after a rest of so many seconds."""
        return self._life.worker.stopping.wait(rest)

    def _find_unread(self, limit: int) -> list[str]:
        """Up to so many memories on disk that are to be read next; none in a sealed home, which
        keeps no words there."""
        with self._life.lock:
            return self._table.unread(limit) if self._term_of is None else []

    def _write_words(self) -> bool:
        return self._state.words.index.write(self._list_changed)

    def _list_changed(self) -> Iterator[str]:
        """The memories that were changed or deleted since this process has read them."""
        since = self._life.upto
        yield from (record_id for _, record_id in self._records.tombstones_since(since))
        for rows in self._records.short_rows(since):
            yield from (str(row[0]) for row in rows)

    def _analyse(self, record: MemoryRecord) -> IndexedDocument:
        # Not in its own zone, which is not stored: an index that is made again has the same days.
        told_at = in_shown_zone(record.created_at)
        return analyse_text(
            record.text, self._term_of, title=self._title_of(record), told_at=told_at
        )

    def _write_vectors(self) -> bool:
        def write(upto: int) -> bool:
            with suppress(*ANN_ERRORS):
                self._state.vectors.write_ann(upto)
                return True
            return False

        def end(_: int, is_written: bool) -> bool:
            self._state.vectors.load(self._state.rows)
            return is_written

        return self._life.write("ann", lambda: self._state.vectors.upto, write, end)
