"""The index file: rows of turns, texts once each, vectors once each, marks of the thread files.

In: changes as `follow` found them, vectors as they come. Out: rows that are new since a point, for
this process or another one that wrote them. It is derived from truth and may vanish at any time;
what is torn or corrupt raises IndexLost and is made again: SQLite's own errors, a checksum for
every row and vector, a hash for every text, all of them keyed in a sealed home.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pysqlite3

from anaphora.core.analyser import ANALYSER
from anaphora.index.turns import ledger_rows as rows
from anaphora.index.turns.columns import Columns
from anaphora.index.turns.records import BulkMark, Change, IndexLost, Mark, text_hash
from anaphora.index.turns.words import WordsMeta
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.db import sqlite

_FORMAT = f"2/{ANALYSER}"
# Whoever waits longer answers from memory instead.
_BUSY_MS = 30
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY"})
MAX_ATTEMPTS = 3
_ALL = 2**63 - 1


class LedgerBusy(Exception):
    """The file cannot be written now: another process writes it, or the disk refuses."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What the file holds beyond a point. `whole` means: forget what you had before.

    Where the bulk of vectors is another one, or reaches further (`bulk_upto`), `owners` has the
    hashes and numbers of what it holds, and `vectors` all that is newer; else `owners` is None.
    """

    whole: bool
    change: int
    epoch: int
    notes: int
    words: WordsMeta
    marks: dict[str, Mark]
    columns: Columns
    speakers: list[str | None]
    vectors: tuple[list[bytes], list[bytes]]
    last_row: int
    last_vector: int
    bulk: BulkMark
    bulk_upto: int
    owners: tuple[list[bytes], list[int]] | None
    failures: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def reads_from(self, bulk: BulkMark, upto: int) -> bool:
        """Whether this was read with the same vectors left to the bulk."""
        same = not upto or self.bulk.generation == bulk.generation
        return same and self.bulk_upto == upto


class Ledger:
    """One connection to the index file, for one thread at a time (the caller holds a lock)."""

    def __init__(
        self,
        path: Path | None,
        embedder: str,
        *,
        read_only: bool = False,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        """Open the file, or one in memory when `path` is None. Raises IndexLost, LedgerBusy."""
        self.path = path
        self.embedder = embedder
        self.read_only = read_only
        self._sealer = sealer
        self._format = _FORMAT + sealer.mark + ("/rows" if sealer.sealed else "")
        self.identity: tuple[int, int] = (0, 0)
        self.wants_purge = False
        try:
            self._db = self._connect()
        except pysqlite3.Error as error:
            raise _translated(error) from error
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise
        if path is not None:
            try:
                found = path.stat()
            except OSError as error:
                self._db.close()
                raise IndexLost("the index file went away") from error
            self.identity = (found.st_dev, found.st_ino)

    def close(self) -> None:
        """Close the connection; the journal goes with the last one."""
        self._db.close()

    @property
    def on_disk(self) -> bool:
        """Whether it is a file that can be written."""
        return self.path is not None and not self.read_only

    def current(self) -> bool:
        """Whether the path still leads to the file that is open."""
        if self.path is None:
            return True
        try:
            found = self.path.stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self.identity

    def outside_version(self) -> int:
        """A number that changes whenever another connection has written."""
        with self._guarded():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def delta(
        self, since: Delta | None, dimensions: int, usable: Callable[[BulkMark], int]
    ) -> Delta:
        """What is new since `since`, or all there is.

        `usable` says up to which number vectors need not be read, since the bulk has them.
        """
        with self._guarded(), _decoding(), self._reading():
            change, epoch, notes, *words = self._db.execute(
                "SELECT change, epoch, notes, generation, upto, count, tokens, signature FROM meta"
            ).fetchone()
            whole = since is None or since.epoch != epoch
            after_row = 0 if since is None or whole else since.last_row
            after_change = 0 if since is None or whole else since.change
            bulk = rows.read_bulk(self._db, self.embedder)
            upto = usable(bulk)
            same = since is not None and since.reads_from(bulk, upto)
            owners = None if same else rows.read_owners(self._db, self.embedder, upto)
            after_vector = since.last_vector if since is not None and same else upto
            columns, speakers = rows.read_columns(self._db, after_row, self._sealer)
            span = (after_vector, _ALL, -1)
            ids, keys, blobs = rows.read_vectors(
                self._db, self.embedder, span, 2 * dimensions, self._sealer
            )
            return Delta(
                whole=whole,
                change=change,
                epoch=epoch,
                notes=notes,
                words=WordsMeta(*words),
                marks=rows.read_marks(self._db, after_change, self._sealer),
                columns=columns,
                speakers=speakers,
                vectors=(keys, blobs),
                last_row=int(columns.ids[-1]) if len(columns) else after_row,
                last_vector=ids[-1] if ids else after_vector,
                bulk=bulk,
                bulk_upto=upto,
                owners=owners,
                failures=rows.read_failures(self._db, self.embedder),
            )

    def digests(self, code: int) -> list[bytes]:
        """The digests of a thread's indexed turns, in order."""
        with self._guarded(), _decoding():
            found = self._db.execute(
                "SELECT digest FROM turns WHERE thread = ? ORDER BY position", (code,)
            )
            return [row[0] for row in found]

    def texts(self, hashes: Sequence[bytes]) -> dict[bytes, str]:
        """Texts by their hash, checked against it. Raises IndexLost where one is not the same."""
        found: dict[bytes, str] = {}
        with self._guarded(), _decoding():
            for some in _slices(list(dict.fromkeys(hashes)), 500):
                query = f"SELECT hash, text FROM texts WHERE hash IN ({_marks_for(some)})"  # noqa: S608
                for key, data in self._db.execute(query, some):
                    opened = rows.opened(self._sealer, "text", key, data)
                    text = opened.decode("utf-8", "surrogatepass")
                    if text_hash(text, self._sealer.hash_key) != key:
                        raise IndexLost("a text is not the one that was written")
                    found[key] = text
        return found

    def tokens(self, after: int, upto: int = _ALL) -> list[tuple[int, int, str]]:
        """Row id, thread's code and tokens of the rows after one row id up to another, in order."""
        with self._guarded(), _decoding():
            found = self._db.execute(
                "SELECT t.id, t.thread, x.tokens, x.checked, x.hash FROM turns t"
                " JOIN texts x ON x.hash = t.text_hash WHERE t.id > ? AND t.id <= ? ORDER BY t.id",
                (after, upto),
            ).fetchall()
            check = self._sealer.check
            if any(check("tokens", row[4], row[2].encode()) != row[3] for row in found):
                raise IndexLost("tokens are not the ones that were written")
        return [row[:3] for row in found]

    def apply(self, changes: Sequence[Change], notes: int | None) -> bool:
        """Write changes in one transaction; False where the file is not at their base any more."""
        with self._guarded(), self._writing() as change:
            if any(not rows.at_base(self._db, item, self._sealer) for item in changes):
                self._db.execute("ROLLBACK")
                return False
            gone = [rows.write_change(self._db, item, change, self._sealer) for item in changes]
            self._db.execute("UPDATE meta SET notes = coalesce(?, notes)", (notes,))
            if any(lowest is not None for lowest in gone):
                rows.forget_orphans(self._db, min(low for low in gone if low is not None))
        if any(item.dropped for item in changes):
            self.purge()
        return True

    def purge(self) -> bool:
        """Empty the journal, which still has the bytes of what was deleted; whether it did."""
        with self._guarded():
            busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self.wants_purge = bool(busy)
        return not busy

    def save_vectors(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep the stored form of texts' vectors; a failure of theirs is over."""
        with self._guarded(), self._writing():
            for key, vector in vectors:
                blob = self._sealer.seal("vector", key, vector)
                # Its turn can have been forgotten while it was embedded.
                self._db.execute(
                    "INSERT OR IGNORE INTO vectors (text_hash, embedder, parts, checked)"
                    " SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM texts WHERE hash = ?)",
                    (key, self.embedder, blob, zlib.crc32(blob, zlib.crc32(key)), key),
                )
                self._db.execute(
                    "DELETE FROM failures WHERE text_hash = ? AND embedder = ?",
                    (key, self.embedder),
                )

    def save_failures(self, failures: Iterable[tuple[bytes, str]]) -> None:
        """Count one more attempt to embed these texts, and why it failed."""
        with self._guarded(), self._writing():
            self._db.executemany(
                "INSERT INTO failures (text_hash, embedder, attempts, reason) VALUES (?, ?, 1, ?)"
                " ON CONFLICT (text_hash, embedder) DO UPDATE"
                " SET attempts = attempts + 1, reason = excluded.reason",
                [(key, self.embedder, reason[:200]) for key, reason in failures],
            )

    def set_words(self, words: WordsMeta, *, seen: WordsMeta, epoch: int) -> bool:
        """Say that the bulk is `words` now; False where rows or the bulk changed meanwhile."""
        with self._guarded(), self._writing():
            now = self._db.execute("SELECT epoch, generation, upto FROM meta").fetchone()
            if now != (epoch, seen.generation, seen.upto):
                self._db.execute("ROLLBACK")
                return False
            self._db.execute(
                "UPDATE meta SET generation = ?, upto = ?, count = ?, tokens = ?, signature = ?",
                (words.generation, words.upto, words.count, words.tokens, words.signature),
            )
        return True

    def vectors(
        self, which: tuple[int, int, int] | list[int], dimensions: int
    ) -> tuple[list[int], list[bytes]]:
        """Numbers and vectors; `which` is (after, upto, limit) of numbers, or up to 500 of them."""
        own, width = self.embedder, 2 * dimensions
        with self._guarded(), _decoding():
            if isinstance(which, tuple):
                ids, _, blobs = rows.read_vectors(self._db, own, which, width, self._sealer)
            else:
                ids, _, blobs = rows.read_some_vectors(self._db, which, width, self._sealer)
        return ids, blobs

    def move_bulk(self, before: BulkMark, after: BulkMark) -> bool:
        """Say something new of the bulk of vectors; False where `before` does not hold any more."""
        with self._guarded(), self._writing():
            return rows.move_bulk(self._db, self.embedder, before, after)

    def bulk_embedders(self) -> list[str]:
        """Whose vectors may lie in a bulk."""
        with self._guarded():
            return [row[0] for row in self._db.execute("SELECT embedder FROM bulk")]

    def problems(self) -> tuple[str, ...]:
        """What SQLite finds wrong in the file."""
        with self._guarded():
            found = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        return () if found == ["ok"] else tuple(found)

    def _connect(self) -> Any:
        if self.path is None:
            place = ":memory:"
        elif self.read_only:
            # A directory that cannot be written has no place for the journal's shared memory.
            place = self.path.absolute().as_uri() + "?mode=ro&immutable=1"
        else:
            place = self.path.absolute().as_uri() + "?mode=rwc"
        return pysqlite3.connect(
            place, uri=self.path is not None, check_same_thread=False, isolation_level=None
        )

    def _prepare(self) -> None:
        with self._guarded(), _decoding():
            self._db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._db.execute("PRAGMA secure_delete = ON")
            if not self.read_only and self.path is not None:
                safe = sqlite.wal_is_safe(sqlite.library_version())
                self._db.execute(f"PRAGMA journal_mode = {'WAL' if safe else 'DELETE'}")
                # It survives a killed process whole, and is made again after a power cut.
                self._db.execute("PRAGMA synchronous = NORMAL")
            self._check_format()

    def _check_format(self) -> None:
        has_meta = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
        if not self._db.execute(has_meta).fetchone()[0]:
            self._db.execute("BEGIN IMMEDIATE")
            # Another process can have been first while this one waited.
            if not self._db.execute(has_meta).fetchone()[0]:
                for statement in rows.SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(
                    "INSERT INTO meta VALUES (1, ?, 0, 0, -1, '', 0, 0, 0, 0)", (self._format,)
                )
            self._db.execute("COMMIT")
        row = self._db.execute("SELECT format FROM meta").fetchone()
        if row is None or row[0] != self._format:
            raise IndexLost("the index has another format")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except pysqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise _translated(error) from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A write transaction with its number; the body may roll back itself."""
        if self.read_only:
            raise LedgerBusy("the index cannot be written here")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("UPDATE meta SET change = change + 1")
            yield int(self._db.execute("SELECT change FROM meta").fetchone()[0])
            if self._db.in_transaction:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


def _translated(error: Exception) -> Exception:
    name = getattr(error, "sqlite_errorname", "") or ""
    if any(name.startswith(kind) for kind in _BUSY):
        return LedgerBusy(str(error))
    return IndexLost(str(error))


@contextmanager
def _decoding() -> Iterator[None]:
    """What cannot be decoded is torn: garbage even reaches the driver's own error messages."""
    try:
        yield
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise IndexLost(f"what is in it cannot be read: {error!r}") from error


def _slices(items: list[bytes], size: int) -> Iterator[list[bytes]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _marks_for(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))
