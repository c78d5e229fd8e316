"""The index of projects and notes: follows the database by its numbers, queried by words, vectors.

What any process stored before a query is in its answer: checking for changes takes one small read.
Nothing is embedded here and no text stays in memory; the directory can vanish at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
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
from anaphora.index.maintenance import IndexLost
from anaphora.index.rows import CURRENT
from anaphora.index.words.file import WordFile, WordPlan
from anaphora.index.words.index import WordIndex
from anaphora.index.words.segment import WORD_INDEX_ERRORS
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer

TAIL_LIMIT: Final = 1_000
"""Documents with words in memory only before they are written to disk."""

STEP: Final = 4_000
"""Documents written at once if many are new: their texts are in memory meanwhile."""

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
        self._life = IndexLife(
            "anaphora-section-index",
            directory,
            mend=self._open_anew,
            finish=self._finish,
            background=background,
        )
        self._source = source
        self._embedder = embedder
        self._term_of = sealer.token_key if sealer.sealed else None
        self._changes = SectionChanges(source, self._term_of)
        self._file = WordFile(
            directory / "words",
            "sections.words",
            sealer.mark,
            source.check,
            self._changes.list_keys,
            fields=len(FIELDS),
        )
        self._state = self._empty()
        # Why the file could not be opened: the database answers, and it is rewritten.
        self._problem: str | None = None

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
        rows = self._state.rows
        changes = self._changes.changed(rows, -1)
        self._file.tidy(self._life.writing)
        self._problem = self._file.problem()
        words = self._state.words.index
        words.open(rows.row, self._source.version())
        upto = -1 if words.segment is None else words.segment.upto
        self._take_in(self._changes.later_than(rows, changes, upto), progress)
        return len(rows)

    def _take_changes(self, since: int, progress: ProgressCount | None) -> int:
        changes = self._changes.changed(self._state.rows, since)
        for row in changes.gone:
            self._state.words.index.drop(row)
        document_count = self._take_in(changes, progress)
        if changes.forgotten:
            self._state.words.index.purge()
        return len(changes.gone) + document_count

    def _caught_up(self, since: int) -> None:
        words = self._state.words.index
        if words.segment is not None and words.segment.upto < 0:
            # Only now are the words on disk, which were written in steps, complete.
            self._write_waiting(self._life.seq)
        if words.waiting > TAIL_LIMIT or self._needs_rewrite():
            self._life.begin(self._settle_in_background)

    def _empty(self) -> SectionState:
        words = SectionWords(WordIndex(self._file, self._term_of))
        return SectionState(SectionRows(), words, SectionVectors(self._source, self._embedder))

    def _take_in(self, changed: Changed, progress: ProgressCount | None) -> int:
        """Index the documents of changes; if there are many, write them in steps; how many."""
        rows, words = self._state.rows, self._state.words.index
        total, document_count, waiting_at_failure = len(changed), 0, 0
        for document in self._changes.documents(rows, changed):
            row = rows.row(document.key)
            if row >= 0:
                words.put(row, document)
            document_count += 1
            if progress is not None and document_count % 500 == 0:
                progress(document_count, total)
            if words.waiting >= STEP + waiting_at_failure:
                # Up to -1: a process that opens it before it is complete must read everything.
                is_written = self._write_waiting(-1)
                # If another process is writing or the disk refuses, documents stay in memory.
                waiting_at_failure = 0 if is_written else words.waiting
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

        def find() -> SectionCandidates:
            self.sync()
            try:
                return self._state.find(query)
            except WORD_INDEX_ERRORS as error:
                raise IndexLost(str(error)) from error

        try:
            return self._life.use(find)
        except IndexLost as error:
            with self._life.held():
                return self._state.without_words(query, str(error))

    def _open_anew(self, _: Exception) -> None:
        # The files vanished while they were read: the next catching up reads the database again.
        self._life.seq = -1

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
        """Catch up, and check the files on disk, which are read whole."""
        with self._life.held():
            self.sync()
            state = self._state
            count = state.rows.known()
            waiting = state.words.index.waiting
            is_embedded = state.vectors.embedded(state.rows.vector_keys())
            pending = int(((state.rows.column("state") == CURRENT) & ~is_embedded).sum())
        on_disk = self._file.open()
        written_count = 0 if on_disk is None else on_disk.count
        problem = self._problem or self._file.problem()
        return SectionCheck(count, written_count, waiting, pending, problem)

    def rebuild(self) -> bool:
        """Rebuild the words on disk from the database; False if another process is writing."""
        with self._life.writing("words") as is_locked:
            if not is_locked:
                return False
            with self._life.held():
                self._file.remove_all()
                self._state, self._life.seq = self._empty(), -1
        self.sync()
        return self.settle()

    def settle(self) -> bool:
        """Write what is only in memory; False if another process writes or the disk refuses.

        If many documents on disk no longer count, everything is rewritten.
        """
        return self._life.write(
            "words",
            lambda: self._plan(self._life.seq),
            lambda plan: self._file.write(plan, self._life.cut_short.is_set),
            lambda *_: self._open_words(),
        )

    def _plan(self, upto: int) -> WordPlan | bool:
        words, on_disk = self._state.words.index, self._file.open()
        if on_disk is not None and (
            words.segment is None or on_disk.generation != words.segment.generation
        ):
            # Another process has written meanwhile.
            self._open_words()
        if words.waiting or self._needs_rewrite() or (on_disk is None and words.count):
            return words.plan(upto)
        is_behind = words.segment is not None and words.segment.upto < upto
        return words.plan(upto) if is_behind else True

    def mend(self) -> bool:
        """Rewrite the words on disk if they could not be opened; whether they are well."""
        return self._problem is None or self.settle()

    def purge(self) -> bool:
        """Remove deleted words from the disk now, however few they are; see `settle`."""
        self._life.end_rewrite()
        with self._life.held():
            self.sync()
            self._state.words.index.purge()
        return self.settle()

    def close(self) -> None:
        """End the background and write what is worth writing. Safe to call twice."""
        self._life.close()

    def _finish(self) -> None:
        with self._life.lock:
            is_worth = self._problem is not None or self._needs_rewrite()
            is_worth |= self._state.words.index.waiting > _TAIL_AT_CLOSE
        if is_worth:
            self.settle()

    def _needs_rewrite(self) -> bool:
        """Whether many documents on disk no longer count."""
        words = self._state.words.index
        return words.gone > max(TAIL_LIMIT, words.count // 4)

    def _write_waiting(self, upto: int) -> bool:
        """Write the waiting documents beside those on disk. The caller holds the lock."""
        with self._life.writing("words") as is_locked:
            plan = is_locked and self._plan(upto)
            if isinstance(plan, bool):
                return plan
            return self._file.write(plan) and self._open_words()

    def _open_words(self) -> bool:
        is_open = self._state.words.index.open(self._state.rows.row, self._life.seq)
        if is_open:
            self._problem = None
        return is_open

    def _settle_in_background(self) -> None:
        # If it cannot be written, memory answers, and a later change tries again.
        with suppress(AnaphoraError):
            self.settle()
