"""The index of projects and notes: follows the database by its numbers, queried by words, vectors.

What any process stored before a query is in its answer: checking for changes takes one small read.
Nothing is embedded here and no text stays in memory; the directory can vanish at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.progress import ProgressCount
from anaphora.errors import AnaphoraError
from anaphora.features.projects.index.changes import Changed, SectionChanges
from anaphora.features.projects.index.rows import SectionRows
from anaphora.features.projects.index.state import (
    SectionCandidates,
    SectionCheck,
    SectionQuery,
    SectionState,
)
from anaphora.features.projects.index.vectors import SectionVectors
from anaphora.features.projects.index.words import FIELDS, SectionWords
from anaphora.features.projects.ranking.table import SectionTable
from anaphora.features.projects.store.source import SectionSource, SectionText
from anaphora.index.life_cycle import IndexLife
from anaphora.index.rows import CURRENT
from anaphora.index.words.index import WordIndex
from anaphora.index.words.table import DocumentTable
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer

TAIL_LIMIT: Final = 1_000
"""Documents with words in memory only before they are written to disk."""

STEP: Final = 1_000
"""Documents that are indexed, and written if many are new, at once."""

_TAIL_AT_CLOSE: Final = 100

Rows = NDArray[np.int64]


class SectionIndex:
    """The sections and notes of one namespace. Cheap to make: it opens on first use.

    Thread-safe; any number of processes may share `directory`. `embedder` is the (name, dimensions)
    of the vectors that are compared. `sealer` replaces tokens on disk. With `background` False,
    only `settle` writes.
    """

    def __init__(
        self,
        directory: Path,
        source: SectionSource,
        embedder: tuple[str, int],
        *,
        sealer: IndexSealer = CLEAR_INDEX,
        background: bool = True,
    ) -> None:
        directory = Path(directory)
        self._table = DocumentTable(directory, sealer, check=source.check)
        self._life = IndexLife(
            "anaphora-section-index",
            directory,
            finish=self._finish,
            let_go=self._table.close,
            background=background,
        )
        self._source = source
        self._embedder = embedder
        self._term_of = sealer.token_key if sealer.sealed else None
        self._changes = SectionChanges(source, self._term_of)
        self._state = self._empty()
        # Up to which number of the database all that was deleted has left the disk.
        self._purged = -1

    # Following the database.

    def sync(self, progress: ProgressCount | None = None) -> int:
        """Catch up with the database; how many documents are new or changed.

        `progress` is called with (documents indexed, documents in all) during long work.
        """

        def read(since: int) -> int:
            return self._take_changes(since, progress) if since >= 0 else self._open(progress)

        return self._life.catch_up(self._source.version, read, self._caught_up)

    def _open(self, progress: ProgressCount | None) -> int:
        """Read everything: on the first query, or if the database was restored from a backup."""
        self._state = self._empty()
        rows, words = self._state.rows, self._state.words.index
        changes = self._changes.changed(rows, -1)
        marks = np.array([rows.mark(row) for row in range(len(rows))], np.int64)
        words.open(rows.row, marks)
        words.purge()
        missing = set(words.find_missing(np.arange(len(rows))).tolist())
        changes.sections = [key for key in changes.sections if rows.row(key) in missing]
        changes.notes = [note for note in changes.notes if rows.row(note.id) in missing]
        self._take_in(changes, progress)
        return len(rows)

    def _take_changes(self, since: int, progress: ProgressCount | None) -> int:
        changes = self._changes.changed(self._state.rows, since)
        for row, key in changes.gone:
            self._state.words.index.drop(row, key)
        document_count = self._take_in(changes, progress)
        self._state.words.index.purge()
        return len(changes.gone) + document_count

    def _caught_up(self, _: int) -> None:
        if self._state.words.index.due > TAIL_LIMIT:
            self._life.begin(self._write_in_background)

    def _empty(self) -> SectionState:
        words = SectionWords(WordIndex(self._table, self._term_of, len(FIELDS)))
        return SectionState(SectionRows(), words, SectionVectors(self._source, self._embedder))

    def _take_in(self, changed: Changed, progress: ProgressCount | None) -> int:
        """Index the documents of changes; if there are many, write them in steps; how many."""
        rows, words = self._state.rows, self._state.words.index
        total, document_count = len(changed), 0
        documents = self._changes.documents(rows, changed)
        while chunk := list(islice(documents, STEP)):
            words.put_all({row: stored for stored in chunk if (row := rows.row(stored.key)) >= 0})
            document_count += len(chunk)
            if progress is not None and document_count < total:
                progress(document_count, total)
            if words.due >= STEP and self._life.background:
                # If another process is writing or the disk refuses, documents stay in memory.
                words.write(self._list_changed)
        if progress is not None and total:
            progress(total, total)
        self._state.vectors.sync()
        return document_count

    # Queries.

    def __len__(self) -> int:
        """How many sections and notes there are, including past ones."""
        with self._life.held():
            self.sync()
            return self._state.rows.known()

    def candidates(self, query: SectionQuery) -> SectionCandidates:
        """The visible rows that match words, with their scores and cosines."""

        with self._life.held():
            self.sync()
            return self._state.find(query)

    def described(self, query: SectionQuery, rows: Rows) -> SectionCandidates:
        """The visible ones of these rows as candidates, with their scores and cosines."""
        with self._life.held():
            self.sync()
            keep = self._state.keep(query)
            weights = self._state.weights(query)
            return self._state.described(query, weights, rows[keep[rows]], keep)

    def visible_rows(self, projects: frozenset[str] | None, now: int) -> Rows:
        """The rows that may be shown now, of these projects or of all."""
        with self._life.held():
            self.sync()
            query = SectionQuery({}, 0, now, projects=projects)
            return np.flatnonzero(self._state.keep(query))

    def table(self) -> SectionTable:
        """The columns of all rows."""
        with self._life.held():
            self.sync()
            return self._state.rows.table()

    def row(self, key: str) -> int:
        """The row of a section or a note, -1 for an unknown one."""
        with self._life.lock:
            return self._state.rows.row(key)

    def path_of(self, file_id: str) -> str:
        """The path of a file, "" for an unknown one."""
        with self._life.lock:
            return self._state.rows.path_of(file_id)

    def texts(self, ids: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these ids, with their text, from the database."""
        return self._source.texts(ids)

    def all_texts(self, projects: frozenset[str] | None = None) -> Iterator[SectionText]:
        """Every section of these projects, or of all, with its text: a scan of the database."""
        with self._life.held():
            self.sync()
            files = [
                file.id
                for file in self._state.rows.files.values()
                if projects is None or file.project in projects
            ]
        for parts in self._source.texts_of_files(files):
            yield from parts

    # The disk.

    def check(self) -> SectionCheck:
        """Catch up, and check the file on disk, which is read whole."""
        with self._life.held():
            self.sync()
            state = self._state
            count = state.rows.known()
            due = state.words.index.due
            is_embedded = state.vectors.embedded(state.rows.vector_keys())
            pending = int(((state.rows.column("state") == CURRENT) & ~is_embedded).sum())
            on_disk = len(self._table.read())
            return SectionCheck(count, on_disk, due, pending, self._table.find_problem())

    def rebuild(self) -> bool:
        """Rebuild the words on disk from the database; False if another process is writing."""
        with self._life.held():
            self._table.remove()
            self._life.seq = -1
        self.sync()
        return self.settle()

    def settle(self) -> bool:
        """Write what is only in memory; False if another process writes or the disk refuses."""
        with self._life.held():
            return self._state.words.index.write(self._list_changed)

    def _list_changed(self) -> Iterator[str]:
        """The items that were changed or deleted since this process has read them."""
        return self._changes.list_keys(self._life.upto)

    def mend(self) -> bool:
        """Write the words on disk again if they could not be read; whether they are well."""
        return self._table.problem is None or self.rebuild()

    def purge(self) -> None:
        """Catch up with the database; on return, forgotten words have left the disk.

        Raises `StoreError` if the disk refuses.
        """
        with self._life.held():
            self.sync()
            # Another process may just be writing one that this one has never seen.
            rows, words = self._state.rows, self._state.words.index
            words.forget(self._changes.list_deleted(rows, self._purged))
            words.purge_surely()
            self._purged = self._life.seq

    def close(self) -> None:
        """End the background and write what is worth writing. Safe to call twice."""
        self._life.close()

    def _finish(self) -> None:
        with self._life.lock:
            if self._state.words.index.due > _TAIL_AT_CLOSE:
                self._state.words.index.write(self._list_changed)

    def _write_in_background(self) -> None:
        # If it cannot be written, memory answers, and a later change tries again.
        with suppress(AnaphoraError):
            self._life.work_in_steps(lambda: self._state.words.index.write_some(self._list_changed))
