"""The index file (SQLite): rows of turns, texts and vectors once each, checkpoints of threads.

It is derived from the database and may vanish at any time. If it is torn or corrupt, IndexLost is
raised and it is rebuilt: detected by SQLite's own errors, a checksum for every row and vector, and
a hash for every text, all of them keyed in a sealed home.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import Tampered
from anaphora.index.maintenance import IndexBusy, IndexLost
from anaphora.index.turns.records import (
    AnnCheckpoint,
    IndexChange,
    IndexedTurn,
    ThreadCheckpoint,
    TurnWordsMeta,
    text_hash,
)
from anaphora.index.turns.table import TURN, Turns, make_turns, no_turns, turn_rows
from anaphora.language.analyser import ANALYSER
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.db import sqlite
from anaphora.store.db.driver import dbapi2

SCHEMA = """
CREATE TABLE meta (
  only INTEGER PRIMARY KEY CHECK (only = 1), format TEXT NOT NULL, change INTEGER NOT NULL,
  epoch INTEGER NOT NULL, notes INTEGER NOT NULL, generation TEXT NOT NULL, upto INTEGER NOT NULL,
  count INTEGER NOT NULL, tokens INTEGER NOT NULL, signature INTEGER NOT NULL);
CREATE TABLE threads (
  code INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, inode INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, seen INTEGER NOT NULL,
  count INTEGER NOT NULL, chain BLOB NOT NULL, stamp INTEGER NOT NULL, title BLOB NOT NULL);
CREATE TABLE turns (
  id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, position INTEGER NOT NULL,
  role INTEGER NOT NULL, speaker BLOB, ts REAL NOT NULL, offset INTEGER NOT NULL,
  length INTEGER NOT NULL, flags INTEGER NOT NULL, text_hash BLOB NOT NULL, digest BLOB NOT NULL,
  checked INTEGER NOT NULL, UNIQUE (thread, position));
CREATE INDEX turns_by_text ON turns (text_hash);
CREATE TABLE texts (
  hash BLOB PRIMARY KEY, text BLOB NOT NULL, tokens TEXT NOT NULL, checked INTEGER NOT NULL);
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY AUTOINCREMENT, text_hash BLOB NOT NULL, embedder TEXT NOT NULL,
  parts BLOB NOT NULL, checked INTEGER NOT NULL, UNIQUE (text_hash, embedder));
CREATE TABLE failures (
  text_hash BLOB NOT NULL, embedder TEXT NOT NULL, attempts INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (text_hash, embedder)) WITHOUT ROWID;
CREATE TABLE ann (
  embedder TEXT PRIMARY KEY, generation TEXT NOT NULL, upto INTEGER NOT NULL,
  target INTEGER NOT NULL) WITHOUT ROWID;
"""

_FORMAT = f"4/{ANALYSER}"
# If the file is busy for longer, memory answers instead.
_BUSY_MS = 30
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY"})
_VECTORS = "SELECT id, text_hash, parts, checked FROM vectors"
MAX_ATTEMPTS = 3
_ALL = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Delta:
    """The content of the file beyond a point. `whole`: it replaces all earlier content.

    If the ANN index is another one, or reaches further (`ann_upto`), `owners` has the hashes and
    numbers of its vectors, and `vectors` all newer ones; otherwise `owners` is None.
    """

    whole: bool
    change: int
    epoch: int
    notes: int
    words: TurnWordsMeta
    checkpoints: dict[str, ThreadCheckpoint]
    turns: Turns
    speakers: list[str | None]
    vectors: tuple[list[bytes], list[bytes]]
    last_row: int
    last_vector: int
    ann: AnnCheckpoint
    ann_upto: int
    owners: tuple[list[bytes], list[int]] | None
    failures: dict[bytes, tuple[int, str]] = field(default_factory=dict)


class TurnIndexFile:
    """One connection to the index file, for one thread at a time (the caller holds a lock)."""

    def __init__(
        self,
        path: Path | None,
        embedder: str,
        *,
        read_only: bool = False,
        sealer: IndexSealer = CLEAR_INDEX,
    ) -> None:
        """Open the file, or one in memory if `path` is None. Raises IndexLost, IndexBusy."""
        self.path = path
        self.embedder = embedder
        self.read_only = read_only
        self._sealer = sealer
        self._format = _FORMAT + sealer.mark + ("/rows" if sealer.sealed else "")
        self.identity: tuple[int, int] = (0, 0)
        self.wants_purge = False
        try:
            if self.path is None:
                uri = ":memory:"
            elif self.read_only:
                # In a read-only directory the shared memory of the journal cannot be created.
                uri = self.path.absolute().as_uri() + "?mode=ro&immutable=1"
            else:
                uri = self.path.absolute().as_uri() + "?mode=rwc"
            self._db = dbapi2.connect(
                uri, uri=self.path is not None, check_same_thread=False, isolation_level=None
            )
        except dbapi2.Error as error:
            raise _translate(error) from error
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise
        if path is not None:
            try:
                status = path.stat()
            except OSError as error:
                self._db.close()
                raise IndexLost("the index file went away") from error
            self.identity = (status.st_dev, status.st_ino)

    def close(self) -> None:
        """Close the connection; the journal is deleted with the last one."""
        self._db.close()

    @property
    def on_disk(self) -> bool:
        """Whether it is a file that can be written."""
        return self.path is not None and not self.read_only

    def current(self) -> bool:
        """Whether the open file is still the one at its path."""
        if self.path is None:
            return True
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def outside_version(self) -> int:
        """A number that changes whenever another connection has written."""
        with self._guarded():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def delta(
        self, since: Delta | None, dimensions: int, usable: Callable[[AnnCheckpoint], int]
    ) -> Delta:
        """The content that is new since `since`, or all of it.

        `usable` gives the number up to which vectors need not be read, since the ANN index has
        them.
        """
        with self._reading():
            change, epoch, notes, generation, last_row, count, tokens, signature = self._db.execute(
                "SELECT change, epoch, notes, generation, upto, count, tokens, signature FROM meta"
            ).fetchone()
            all_anew = since is None or since.epoch != epoch
            after_row = 0 if since is None or all_anew else since.last_row
            after_change = 0 if since is None or all_anew else since.change
            ann = self._ann()
            upto = usable(ann)
            same_ann = (
                since is not None
                and (not upto or since.ann.generation == ann.generation)
                and since.ann_upto == upto
            )
            after_vector = since.last_vector if since is not None and same_ann else upto
            turns, speakers = self._turns(after_row)
            ids, keys, blobs = self._vectors((after_vector, _ALL, -1), dimensions)
            stored = self._db.execute(
                "SELECT text_hash, attempts, reason FROM failures WHERE embedder = ?",
                (self.embedder,),
            )
            return Delta(
                whole=all_anew,
                change=change,
                epoch=epoch,
                notes=notes,
                words=TurnWordsMeta(generation, last_row, count, tokens, signature),
                checkpoints=self._checkpoints(after_change),
                turns=turns,
                speakers=speakers,
                vectors=(keys, blobs),
                last_row=int(turns.rows["id"][-1]) if len(turns) else after_row,
                last_vector=ids[-1] if ids else after_vector,
                ann=ann,
                ann_upto=upto,
                owners=None if same_ann else self._owners(upto),
                failures={row[0]: (row[1], row[2]) for row in stored},
            )

    def digests(self, code: int) -> list[bytes]:
        """The digests of a thread's indexed turns, in order."""
        query = "SELECT digest FROM turns WHERE thread = ? ORDER BY position"
        with self._reading():
            return [row[0] for row in self._db.execute(query, (code,))]

    def texts(self, hashes: Sequence[bytes]) -> dict[bytes, str]:
        """Texts by their hash, checked against it. Raises IndexLost if one differs."""
        texts: dict[bytes, str] = {}
        distinct_hashes = list(dict.fromkeys(hashes))
        with self._reading():
            for start in range(0, len(distinct_hashes), 500):
                chunk = distinct_hashes[start : start + 500]
                query = f"SELECT hash, text FROM texts WHERE hash IN ({_placeholders(chunk)})"  # noqa: S608
                for key, sealed_text in self._db.execute(query, chunk):
                    plain = self._sealer.open("text", key, bytes(sealed_text))
                    text = plain.decode("utf-8", "surrogatepass")
                    if text_hash(text, self._sealer.hash_key) != key:
                        raise IndexLost("a text is not the one that was written")
                    texts[key] = text
        return texts

    def tokens(self, after: int, upto: int = _ALL) -> list[tuple[int, int, str]]:
        """Row id, code of the thread and tokens of the rows in a range of row ids, in order."""
        with self._reading():
            rows = self._db.execute(
                "SELECT t.id, t.thread, x.tokens, x.checked, x.hash FROM turns t"
                " JOIN texts x ON x.hash = t.text_hash WHERE t.id > ? AND t.id <= ? ORDER BY t.id",
                (after, upto),
            ).fetchall()
            check = self._sealer.check
            if any(check("tokens", row[4], row[2].encode()) != row[3] for row in rows):
                raise IndexLost("tokens are not the ones that were written")
        return [row[:3] for row in rows]

    def vectors(
        self, which: tuple[int, int, int] | list[int], dimensions: int
    ) -> tuple[list[int], list[bytes]]:
        """Numbers and vectors; `which` is (after, upto, limit) of numbers, or up to 500 of them.

        A limit of -1 is none.
        """
        with self._reading():
            ids, _, blobs = self._vectors(which, dimensions)
        return ids, blobs

    def ann_embedders(self) -> list[str]:
        """The embedders with vectors that may be in an ANN index."""
        with self._guarded():
            return [row[0] for row in self._db.execute("SELECT embedder FROM ann")]

    def problems(self) -> tuple[str, ...]:
        """The problems of the file that SQLite finds."""
        with self._guarded():
            messages = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        return () if messages == ["ok"] else tuple(messages)

    def apply(self, changes: Sequence[IndexChange], notes: int | None) -> bool:
        """Write changes in one transaction; False if the file is no longer at their base."""
        with self._writing() as number:
            if not all(map(self._is_at_base, changes)):
                self._db.execute("ROLLBACK")
                return False
            lowest_rows = [self._write_change(change, number) for change in changes]
            self._db.execute("UPDATE meta SET notes = coalesce(?, notes)", (notes,))
            if lowest := [row for row in lowest_rows if row is not None]:
                execute = self._db.execute
                execute("DELETE FROM texts WHERE hash NOT IN (SELECT text_hash FROM turns)")
                # LanceDB keeps deleted vectors in files and graph: the ANN index is made anew.
                execute(
                    "DELETE FROM ann WHERE EXISTS (SELECT 1 FROM vectors"
                    " WHERE vectors.id <= ann.target AND vectors.embedder = ann.embedder"
                    " AND text_hash NOT IN (SELECT hash FROM texts))"
                )
                for table in ("vectors", "failures"):
                    execute(f"DELETE FROM {table} WHERE text_hash NOT IN (SELECT hash FROM texts)")  # noqa: S608
                execute("UPDATE meta SET epoch = epoch + 1")
                # The segment is made anew, from the tokens of the rows that are left.
                execute(
                    "UPDATE meta SET generation = '', upto = 0, count = 0, tokens = 0,"
                    " signature = 0 WHERE upto >= ?",
                    (min(lowest),),
                )
        if any(change.dropped or change.renamed for change in changes):
            self.purge()
        return True

    def purge(self) -> bool:
        """Truncate the journal, which still contains deleted content; whether that succeeded."""
        with self._guarded():
            busy = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self.wants_purge = bool(busy)
        return not busy

    def save_vectors(self, vectors: Iterable[tuple[bytes, bytes]]) -> None:
        """Store the vectors of texts, and clear their failures."""
        with self._writing():
            for key, vector in vectors:
                blob = self._sealer.seal("vector", key, vector)
                # The turn may have been forgotten while its text was embedded.
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
        """Count one more failed attempt for each of these texts, with its reason."""
        with self._writing():
            self._db.executemany(
                "INSERT INTO failures (text_hash, embedder, attempts, reason) VALUES (?, ?, 1, ?)"
                " ON CONFLICT (text_hash, embedder) DO UPDATE"
                " SET attempts = attempts + 1, reason = excluded.reason",
                [(key, self.embedder, reason[:200]) for key, reason in failures],
            )

    def set_words(self, words: TurnWordsMeta, *, seen: TurnWordsMeta, epoch: int) -> bool:
        """Record that the segment is `words` now; False if rows or segment changed meanwhile."""
        with self._writing():
            meta_row = self._db.execute("SELECT epoch, generation, upto FROM meta").fetchone()
            if meta_row != (epoch, seen.generation, seen.upto):
                self._db.execute("ROLLBACK")
                return False
            self._db.execute(
                "UPDATE meta SET generation = ?, upto = ?, count = ?, tokens = ?, signature = ?",
                (words.generation, words.upto, words.count, words.tokens, words.signature),
            )
        return True

    def move_ann(self, before: AnnCheckpoint, after: AnnCheckpoint) -> bool:
        """Replace the checkpoint of the ANN index; False if it is no longer `before`."""
        with self._writing():
            if self._ann() != before:
                return False
            self._db.execute(
                "INSERT OR REPLACE INTO ann VALUES (?, ?, ?, ?)",
                (self.embedder, after.generation, after.upto, after.target),
            )
        return True

    # Reading.

    def _turns(self, after: int) -> tuple[Turns, list[str | None]]:
        """Turns after a row id and their speakers; the speakers' codes are left at -1."""
        rows = self._db.execute(
            "SELECT id, thread, position, role, length, flags, ts, offset, text_hash, checked,"
            " speaker, digest FROM turns WHERE id > ? ORDER BY id",
            (after,),
        ).fetchall()
        if not rows:
            return no_turns(), []
        *columns, hashes, stored_checks, names, digests = zip(*rows, strict=True)
        turns = Turns(turn_rows((*columns, -1), len(rows)), list(hashes))
        threads: list[bytes] = []
        if self._sealer.sealed:
            thread_names = dict(self._db.execute("SELECT code, id FROM threads").fetchall())
            threads = [thread_names.get(code, b"") for code in columns[1]]
        checks = row_checks(turns, (names, digests, threads), self._sealer)
        if not np.array_equal(checks, np.array(stored_checks, np.int64)):
            raise IndexLost("rows are not the ones that were written")
        name_of = self._sealer.named
        speakers_by_name = {
            name: None if name is None else name_of(bytes(name)) for name in set(names)
        }
        return turns, [speakers_by_name[name] for name in names]

    def _vectors(
        self, which: tuple[int, int, int] | list[int], dimensions: int
    ) -> tuple[list[int], list[bytes], list[bytes]]:
        """Numbers, hashes of texts and vectors as stored."""
        if isinstance(which, tuple):
            last_id, upto, limit = which
            query = f"{_VECTORS} WHERE id > ? AND id <= ? AND embedder = ? ORDER BY id LIMIT ?"
            rows = self._db.execute(query, (last_id, upto, self.embedder, limit)).fetchall()
        else:
            query = f"{_VECTORS} WHERE id IN ({_placeholders(which)})"
            rows = self._db.execute(query, which).fetchall()
        blobs: list[bytes] = []
        crc = zlib.crc32
        for _, key, stored_vector, stored_check in rows:
            blob = b""
            if crc(stored_vector, crc(key)) == stored_check:
                blob = self._sealer.open("vector", key, bytes(stored_vector))
            if not blob or len(blob) % (2 * dimensions):
                raise IndexLost("a vector is not the one that was written")
            blobs.append(blob)
        return [row[0] for row in rows], [row[1] for row in rows], blobs

    def _owners(self, upto: int) -> tuple[list[bytes], list[int]]:
        """The text hashes and numbers of the vectors up to number `upto`."""
        if not upto:
            return [], []
        stored_rows = self._db.execute(
            "SELECT text_hash, id FROM vectors WHERE id <= ? AND embedder = ? ORDER BY id",
            (upto, self.embedder),
        ).fetchall()
        return [row[0] for row in stored_rows], [row[1] for row in stored_rows]

    def _ann(self) -> AnnCheckpoint:
        row = self._db.execute(
            "SELECT generation, upto, target FROM ann WHERE embedder = ?", (self.embedder,)
        ).fetchone()
        return AnnCheckpoint(*row or ())

    def _checkpoints(self, after: int) -> dict[str, ThreadCheckpoint]:
        """The checkpoints of the threads that were written after a change number."""
        stored_rows = self._db.execute(
            "SELECT id, title, inode, size, mtime, ctime, seen, count, chain, code FROM threads"
            " WHERE stamp > ?",
            (after,),
        )
        name_of, unseal = self._sealer.named, self._sealer.open
        return {
            name_of(bytes(key)): ThreadCheckpoint(
                (inode, size, mtime, ctime),
                seen_ns,
                count,
                chain,
                code,
                unseal("title", bytes(key), bytes(title)).decode(),
            )
            for key, title, inode, size, mtime, ctime, seen_ns, count, chain, code in stored_rows
        }

    # Writing.

    def _is_at_base(self, change: IndexChange) -> bool:
        """Whether the file has this thread in the state that the change is based on."""
        row = self._db.execute(
            "SELECT inode, size, mtime, ctime, count, chain FROM threads WHERE id = ?",
            (self._sealer.name(change.conversation_id),),
        ).fetchone()
        if row is None or change.base is None:
            return row is None and change.base is None
        base = change.base
        return bool((row[:4], row[4], row[5]) == (base.identity, base.count, base.chain))

    def _write_change(self, change: IndexChange, number: int) -> int | None:
        """Write one change; the lowest row id that was deleted, or None."""
        key, execute = self._sealer.name(change.conversation_id), self._db.execute
        lowest: int | None = None
        if change.base is not None and (change.dropped or change.checkpoint is None):
            condition = "thread = (SELECT code FROM threads WHERE id = ?) AND position >= ?"
            bounds = (key, change.drop_from)
            lowest = execute(f"SELECT min(id) FROM turns WHERE {condition}", bounds).fetchone()[0]  # noqa: S608
            execute(f"DELETE FROM turns WHERE {condition}", bounds)  # noqa: S608
        checkpoint = change.checkpoint
        if checkpoint is None:
            execute("DELETE FROM threads WHERE id = ?", (key,))
            execute("UPDATE meta SET epoch = epoch + 1")
            return lowest
        seen_ns, count, chain = checkpoint.seen_ns, checkpoint.count, checkpoint.chain
        title = self._sealer.seal("title", key, checkpoint.title.encode("utf-8", "replace"))
        code = execute(
            "INSERT INTO threads (id, inode, size, mtime, ctime, seen, count, chain, stamp, title)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " inode = excluded.inode, size = excluded.size, mtime = excluded.mtime,"
            " ctime = excluded.ctime, seen = excluded.seen, count = excluded.count,"
            " chain = excluded.chain, stamp = excluded.stamp, title = excluded.title"
            " RETURNING code",
            (key, *checkpoint.identity, seen_ns, count, chain, number, title),
        ).fetchall()[0][0]
        if change.records:
            self._insert(code, key, change.records)
        return lowest

    def _insert(self, code: int, thread: bytes, records: Sequence[IndexedTurn]) -> None:
        """Write turns of a thread with this code and stored name."""
        seal, check = self._sealer.seal, self._sealer.check
        self._db.executemany(
            "INSERT OR IGNORE INTO texts (hash, text, tokens, checked) VALUES (?, ?, ?, ?)",
            [
                (
                    r.text_hash,
                    seal("text", r.text_hash, r.text.encode("utf-8", "surrogatepass")),
                    r.tokens,
                    check("tokens", r.text_hash, r.tokens.encode()),
                )
                for r in records
            ],
        )
        last_row = self._db.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'turns'"
        ).fetchone()
        # The file has the names of speakers instead of codes.
        turns = make_turns(code, records, None, first=(last_row[0] if last_row else 0) + 1)
        names = [None if r.speaker is None else self._sealer.name(r.speaker) for r in records]
        digests = [r.digest for r in records]
        checks = row_checks(turns, (names, digests, [thread] * len(records)), self._sealer)
        stored_rows = zip(
            turns.rows.tolist(), turns.hashes, checks.tolist(), names, digests, strict=True
        )
        self._db.executemany(
            "INSERT INTO turns (id, thread, position, role, length, flags, ts, offset, text_hash,"
            " checked, speaker, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*row[:-1], *stored_columns) for row, *stored_columns in stored_rows],
        )

    # The connection.

    def _prepare(self) -> None:
        with self._guarded(decoding=True):
            self._db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute(f"PRAGMA journal_size_limit = {sqlite.LOG_BYTES}")
            if not self.read_only and self.path is not None:
                safe = sqlite.wal_is_safe(sqlite.library_version())
                self._db.execute(f"PRAGMA journal_mode = {'WAL' if safe else 'DELETE'}")
                # Safe if a process is killed; after a power cut the file is rebuilt.
                self._db.execute("PRAGMA synchronous = NORMAL")
            has_meta = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
            if not self._db.execute(has_meta).fetchone()[0]:
                self._db.execute("BEGIN IMMEDIATE")
                # Another process may have been first while this one waited.
                if not self._db.execute(has_meta).fetchone()[0]:
                    for statement in SCHEMA.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(
                        "INSERT INTO meta VALUES (1, ?, 0, 0, -1, '', 0, 0, 0, 0)", (self._format,)
                    )
                self._db.execute("COMMIT")
            row = self._db.execute("SELECT format FROM meta").fetchone()
            if row is None or row[0] != self._format:
                raise IndexLost("the index has another format")

    @contextmanager
    def _guarded(self, *, decoding: bool = False) -> Iterator[None]:
        """Raise IndexLost and IndexBusy for SQLite's errors.

        `decoding`: content that cannot be decoded is torn. It can even garble SQLite's messages.
        """
        try:
            yield
        except dbapi2.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise _translate(error) from error
        except Tampered as error:
            raise IndexLost(str(error)) from error
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            if not decoding:
                raise
            raise IndexLost(f"what is in it cannot be read: {error!r}") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._guarded(decoding=True):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                if self._db.in_transaction:
                    self._db.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """A write transaction with its change number; the body may roll it back."""
        if self.read_only:
            raise IndexBusy("the index cannot be written here")
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.execute("UPDATE meta SET change = change + 1")
                yield int(self._db.execute("SELECT change FROM meta").fetchone()[0])
                if self._db.in_transaction:
                    self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")


def _translate(error: Exception) -> Exception:
    name = getattr(error, "sqlite_errorname", "") or ""
    if any(name.startswith(kind) for kind in _BUSY):
        return IndexBusy(str(error))
    return IndexLost(str(error))


def _placeholders(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))


def row_checks(
    turns: Turns,
    owners: tuple[Sequence[bytes | None], Sequence[bytes], Sequence[bytes]],
    sealer: IndexSealer,
) -> NDArray[np.int64]:
    """The value of `checked` for each of N rows: a CRC-32, or in a sealed home a keyed check.

    `owners` are speakers, digests and threads as stored: in a sealed home the check also covers
    them, so that a row cannot be moved to another thread unnoticed. 100,000 rows take about 0.2 s
    there.
    """
    row_bytes, width = turns.rows.tobytes(), TURN.itemsize
    offsets = range(0, len(row_bytes), width)
    if not sealer.sealed:
        crc, pairs = zlib.crc32, zip(offsets, turns.hashes, strict=True)
        checks = [crc(row_bytes[at : at + width], crc(text)) for at, text in pairs]
        return np.array(checks, np.int64)
    check = sealer.check
    rows = zip(offsets, turns.hashes, *owners, strict=True)
    keyed_checks = (
        check(
            "turn",
            thread,
            # Lengths first: a byte must not move from one column into the next.
            b"%d %d %b%b%b%b"
            % (len(text), len(digest), row_bytes[at : at + width], text, digest, name or b""),
        )
        for at, text, name, digest, thread in rows
    )
    return np.fromiter(keyed_checks, np.int64, len(turns))
