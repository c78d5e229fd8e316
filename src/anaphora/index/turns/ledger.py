"""The index file (SQLite): rows of turns, texts and vectors once each, checkpoints of threads.

It is derived from truth and may vanish at any time; what is torn or corrupt raises IndexLost and is
made again: SQLite's own errors, a checksum for every row and vector, a hash for every text, all of
them keyed in a sealed home. The functions read and write rows within a transaction; `Ledger` is the
connection that begins and ends it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pysqlite3
from numpy.typing import NDArray

from anaphora.core.analyser import ANALYSER
from anaphora.errors import Tampered
from anaphora.index.maintenance import IndexLost
from anaphora.index.turns.records import AnnCheckpoint, Change, Checkpoint, Record, text_hash
from anaphora.index.turns.table import TURN, Turns, no_turns, of_records, turn_rows
from anaphora.index.words.segment import SegmentMeta
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.db import sqlite

SCHEMA = """
CREATE TABLE meta (
  only INTEGER PRIMARY KEY CHECK (only = 1), format TEXT NOT NULL, change INTEGER NOT NULL,
  epoch INTEGER NOT NULL, notes INTEGER NOT NULL, generation TEXT NOT NULL, upto INTEGER NOT NULL,
  count INTEGER NOT NULL, tokens INTEGER NOT NULL, signature INTEGER NOT NULL);
CREATE TABLE threads (
  code INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, inode INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, seen INTEGER NOT NULL,
  count INTEGER NOT NULL, chain BLOB NOT NULL, stamp INTEGER NOT NULL);
CREATE TABLE turns (
  id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, position INTEGER NOT NULL,
  role INTEGER NOT NULL, speaker BLOB, ts REAL NOT NULL, length INTEGER NOT NULL,
  flags INTEGER NOT NULL, text_hash BLOB NOT NULL, digest BLOB NOT NULL, checked INTEGER NOT NULL,
  UNIQUE (thread, position));
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

_VECTORS = "SELECT id, text_hash, parts, checked FROM vectors"


def read_turns(db: Any, after: int, sealer: IndexSealer) -> tuple[Turns, list[str | None]]:
    """Turns after a row id and who spoke them; the column of speakers' codes is left at -1."""
    found = db.execute(
        "SELECT id, thread, position, role, length, flags, ts, text_hash, checked, speaker, digest"
        " FROM turns WHERE id > ? ORDER BY id",
        (after,),
    ).fetchall()
    if not found:
        return no_turns(), []
    *columns, hashes, checked, names, digests = zip(*found, strict=True)
    turns = Turns(turn_rows((*columns, -1), len(found)), list(hashes))
    owners = (names, digests, _owners(db, columns[1]) if sealer.sealed else ())
    if not np.array_equal(row_checks(turns, owners, sealer), np.array(checked, np.int64)):
        raise IndexLost("rows are not the ones that were written")
    decoded = {name: None if name is None else _named(name, sealer) for name in set(names)}
    return turns, [decoded[name] for name in names]


def read_vectors(
    db: Any, embedder: str, span: tuple[int, int, int], width: int, sealer: IndexSealer
) -> tuple[list[int], list[bytes], list[bytes]]:
    """Numbers, hashes of texts and vectors as stored; `width` is bytes a part.

    `span` is (after, upto, limit) of the numbers; a limit of -1 is none.
    """
    after, upto, limit = span
    found = db.execute(
        f"{_VECTORS} WHERE id > ? AND id <= ? AND embedder = ? ORDER BY id LIMIT ?",
        (after, upto, embedder, limit),
    ).fetchall()
    return _checked(found, width, sealer)


def read_some_vectors(
    db: Any, ids: list[int], width: int, sealer: IndexSealer
) -> tuple[list[int], list[bytes], list[bytes]]:
    """The same for up to 500 numbers."""
    marks = ",".join("?" * len(ids))
    found = db.execute(f"{_VECTORS} WHERE id IN ({marks})", ids).fetchall()
    return _checked(found, width, sealer)


def _checked(
    found: list[tuple[int, bytes, bytes, int]], width: int, sealer: IndexSealer
) -> tuple[list[int], list[bytes], list[bytes]]:
    crc = zlib.crc32
    blobs: list[bytes] = []
    for _, key, stored, checked in found:
        if crc(stored, crc(key)) != checked:
            raise IndexLost("a vector is not the one that was written")
        blob = opened(sealer, "vector", key, stored)
        if not blob or len(blob) % width:
            raise IndexLost("a vector is not the one that was written")
        blobs.append(blob)
    return [row[0] for row in found], [row[1] for row in found], blobs


def read_owners(db: Any, embedder: str, upto: int) -> tuple[list[bytes], list[int]]:
    """Hashes of the texts whose vectors have a number of up to `upto`, and these numbers."""
    if not upto:
        return [], []
    found = db.execute(
        "SELECT text_hash, id FROM vectors WHERE id <= ? AND embedder = ? ORDER BY id",
        (upto, embedder),
    ).fetchall()
    return [row[0] for row in found], [row[1] for row in found]


def read_ann(db: Any, embedder: str) -> AnnCheckpoint:
    """What the file says of the ANN index of an embedder."""
    row = db.execute(
        "SELECT generation, upto, target FROM ann WHERE embedder = ?", (embedder,)
    ).fetchone()
    return AnnCheckpoint() if row is None else AnnCheckpoint(*row)


def move_ann(db: Any, embedder: str, before: AnnCheckpoint, after: AnnCheckpoint) -> bool:
    """Say something new of the ANN index; False where the file does not say `before`."""
    if read_ann(db, embedder) != before:
        return False
    db.execute(
        "INSERT OR REPLACE INTO ann VALUES (?, ?, ?, ?)",
        (embedder, after.generation, after.upto, after.target),
    )
    return True


def read_checkpoints(db: Any, after: int, sealer: IndexSealer) -> dict[str, Checkpoint]:
    """Marks of the threads that were written after a change number."""
    found = db.execute(
        "SELECT id, inode, size, mtime, ctime, seen, count, chain, code FROM threads"
        " WHERE stamp > ?",
        (after,),
    )
    return {
        _named(row[0], sealer): Checkpoint((row[1], row[2], row[3], row[4]), *row[5:])
        for row in found
    }


def read_failures(db: Any, embedder: str) -> dict[bytes, tuple[int, str]]:
    """Attempts and the last reason of each text that could not be embedded."""
    found = db.execute(
        "SELECT text_hash, attempts, reason FROM failures WHERE embedder = ?", (embedder,)
    )
    return {row[0]: (row[1], row[2]) for row in found}


def at_base(db: Any, change: Change, sealer: IndexSealer) -> bool:
    """Whether the file has this thread as it was when the change was found."""
    row = db.execute(
        "SELECT inode, size, mtime, ctime, count, chain FROM threads WHERE id = ?",
        (sealer.name(change.conversation_id),),
    ).fetchone()
    if row is None or change.base is None:
        return row is None and change.base is None
    base = change.base
    return bool((row[:4], row[4], row[5]) == (base.identity, base.count, base.chain))


def write_change(db: Any, change: Change, number: int, sealer: IndexSealer) -> int | None:
    """Write one change; the lowest row id that went, None when none did."""
    key = sealer.name(change.conversation_id)
    lowest = None
    if change.base is not None and (change.dropped or change.checkpoint is None):
        where = "thread = (SELECT code FROM threads WHERE id = ?) AND position >= ?"
        place = (key, change.drop_from)
        lowest = db.execute(f"SELECT min(id) FROM turns WHERE {where}", place).fetchone()[0]  # noqa: S608
        db.execute(f"DELETE FROM turns WHERE {where}", place)  # noqa: S608
    if change.checkpoint is None:
        db.execute("DELETE FROM threads WHERE id = ?", (key,))
        db.execute("UPDATE meta SET epoch = epoch + 1")
        return lowest
    checkpoint = change.checkpoint
    code = db.execute(
        "INSERT INTO threads (id, inode, size, mtime, ctime, seen, count, chain, stamp)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " inode = excluded.inode, size = excluded.size, mtime = excluded.mtime,"
        " ctime = excluded.ctime, seen = excluded.seen, count = excluded.count,"
        " chain = excluded.chain, stamp = excluded.stamp RETURNING code",
        (key, *checkpoint.identity, checkpoint.seen_ns, checkpoint.count, checkpoint.chain, number),
    ).fetchall()[0][0]
    if change.records:
        _insert(db, (code, key), change.records, sealer)
    return lowest


def _insert(
    db: Any, owner: tuple[int, bytes], records: Sequence[Record], sealer: IndexSealer
) -> None:
    """Write turns of a thread, given by its code and its stored name."""
    code, thread = owner
    db.executemany(
        "INSERT OR IGNORE INTO texts (hash, text, tokens, checked) VALUES (?, ?, ?, ?)",
        [
            (
                r.text_hash,
                sealer.seal("text", r.text_hash, r.text.encode("utf-8", "surrogatepass")),
                r.tokens,
                sealer.check("tokens", r.text_hash, r.tokens.encode()),
            )
            for r in records
        ],
    )
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'turns'").fetchone()
    # Speakers have no codes in the file.
    turns = of_records(code, records, None, first=(last[0] if last else 0) + 1)
    names = [None if r.speaker is None else sealer.name(r.speaker) for r in records]
    digests = [r.digest for r in records]
    checked = row_checks(turns, (names, digests, [thread] * len(records)), sealer)
    stored = zip(turns.rows.tolist(), turns.hashes, checked.tolist(), names, digests, strict=True)
    db.executemany(
        "INSERT INTO turns (id, thread, position, role, length, flags, ts, text_hash, checked,"
        " speaker, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row[:-1], *others) for row, *others in stored],
    )


def _owners(db: Any, codes: Sequence[int]) -> list[bytes]:
    """The stored name of the thread of each of these codes; b"" where there is none."""
    names = dict(db.execute("SELECT code, id FROM threads").fetchall())
    return [names.get(code, b"") for code in codes]


def row_checks(
    turns: Turns,
    owners: tuple[Sequence[bytes | None], Sequence[bytes], Sequence[bytes]],
    sealer: IndexSealer,
) -> NDArray[np.int64]:
    """What `checked` must hold for each of N rows: a CRC-32, or in a sealed home a keyed check.

    `owners` are speakers, digests and threads as they are stored: in a sealed home nobody may give
    a row to another one unseen. 100,000 rows take about 0.2 s there.
    """
    fixed, width = turns.rows.tobytes(), TURN.itemsize
    places = range(0, len(fixed), width)
    if not sealer.sealed:
        crc, pairs = zlib.crc32, zip(places, turns.hashes, strict=True)
        found = [crc(fixed[at : at + width], crc(text)) for at, text in pairs]
        return np.array(found, np.int64)
    check = sealer.check
    rows = zip(places, turns.hashes, *owners, strict=True)
    keyed = (
        check(
            "turn",
            thread,
            # Lengths first: a byte must not move from one column into the next.
            b"%d %d %b%b%b%b"
            % (len(text), len(digest), fixed[at : at + width], text, digest, name or b""),
        )
        for at, text, name, digest, thread in rows
    )
    return np.fromiter(keyed, np.int64, len(turns))


def forget_orphans(db: Any, lowest: int) -> None:
    """Remove what no turn needs any more: without that, a forget would not forget.

    `lowest` is the lowest row id that went.
    """
    db.execute("DELETE FROM texts WHERE hash NOT IN (SELECT text_hash FROM turns)")
    # LanceDB keeps deleted vectors in its files and its graph: the ANN index is made again instead.
    db.execute(
        "DELETE FROM ann WHERE EXISTS (SELECT 1 FROM vectors WHERE vectors.id <= ann.target"
        " AND vectors.embedder = ann.embedder AND text_hash NOT IN (SELECT hash FROM texts))"
    )
    for table in ("vectors", "failures"):
        db.execute(f"DELETE FROM {table} WHERE text_hash NOT IN (SELECT hash FROM texts)")  # noqa: S608
    db.execute("UPDATE meta SET epoch = epoch + 1")
    # tantivy keeps deleted words until it merges: the segment is made again instead.
    db.execute(
        "UPDATE meta SET generation = '', upto = 0, count = 0, tokens = 0, signature = 0"
        " WHERE upto >= ?",
        (lowest,),
    )


def opened(sealer: IndexSealer, kind: str, key: bytes, stored: bytes) -> bytes:
    """A sealed blob of the index. IndexLost where it is not the one that was written."""
    try:
        return sealer.open(kind, key, bytes(stored))
    except Tampered as error:
        raise IndexLost(str(error)) from error


def _named(stored: bytes, sealer: IndexSealer) -> str:
    try:
        return sealer.named(bytes(stored))
    except Tampered as error:
        raise IndexLost(str(error)) from error


_FORMAT = f"3/{ANALYSER}"
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

    Where the ANN index is another one, or reaches further (`ann_upto`), `owners` has the
    hashes and numbers of what it holds, and `vectors` all that is newer; else `owners` is None.
    """

    whole: bool
    change: int
    epoch: int
    notes: int
    words: SegmentMeta
    checkpoints: dict[str, Checkpoint]
    turns: Turns
    speakers: list[str | None]
    vectors: tuple[list[bytes], list[bytes]]
    last_row: int
    last_vector: int
    ann: AnnCheckpoint
    ann_upto: int
    owners: tuple[list[bytes], list[int]] | None
    failures: dict[bytes, tuple[int, str]] = field(default_factory=dict)

    def reads_from(self, ann: AnnCheckpoint, upto: int) -> bool:
        """Whether this was read with the same vectors left to the ANN index."""
        same = not upto or self.ann.generation == ann.generation
        return same and self.ann_upto == upto


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
        self, since: Delta | None, dimensions: int, usable: Callable[[AnnCheckpoint], int]
    ) -> Delta:
        """What is new since `since`, or all there is.

        `usable` says up to which number vectors need not be read, since the ANN index has them.
        """
        with self._guarded(), _decoding(), self._reading():
            change, epoch, notes, generation, last, count, tokens, signed = self._db.execute(
                "SELECT change, epoch, notes, generation, upto, count, tokens, signature FROM meta"
            ).fetchone()
            whole = since is None or since.epoch != epoch
            after_row = 0 if since is None or whole else since.last_row
            after_change = 0 if since is None or whole else since.change
            ann = read_ann(self._db, self.embedder)
            upto = usable(ann)
            same = since is not None and since.reads_from(ann, upto)
            owners = None if same else read_owners(self._db, self.embedder, upto)
            after_vector = since.last_vector if since is not None and same else upto
            turns, speakers = read_turns(self._db, after_row, self._sealer)
            span = (after_vector, _ALL, -1)
            ids, keys, blobs = read_vectors(
                self._db, self.embedder, span, 2 * dimensions, self._sealer
            )
            return Delta(
                whole=whole,
                change=change,
                epoch=epoch,
                notes=notes,
                words=SegmentMeta(generation, last, count, (tokens,) if generation else (), signed),
                checkpoints=read_checkpoints(self._db, after_change, self._sealer),
                turns=turns,
                speakers=speakers,
                vectors=(keys, blobs),
                last_row=int(turns.rows["id"][-1]) if len(turns) else after_row,
                last_vector=ids[-1] if ids else after_vector,
                ann=ann,
                ann_upto=upto,
                owners=owners,
                failures=read_failures(self._db, self.embedder),
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
                query = f"SELECT hash, text FROM texts WHERE hash IN ({_placeholders(some)})"  # noqa: S608
                for key, data in self._db.execute(query, some):
                    plain = opened(self._sealer, "text", key, data)
                    text = plain.decode("utf-8", "surrogatepass")
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
            if any(not at_base(self._db, item, self._sealer) for item in changes):
                self._db.execute("ROLLBACK")
                return False
            gone = [write_change(self._db, item, change, self._sealer) for item in changes]
            self._db.execute("UPDATE meta SET notes = coalesce(?, notes)", (notes,))
            if any(lowest is not None for lowest in gone):
                forget_orphans(self._db, min(low for low in gone if low is not None))
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

    def set_words(self, words: SegmentMeta, *, seen: SegmentMeta, epoch: int) -> bool:
        """Say that the segment is `words` now; False where rows or segment changed meanwhile."""
        with self._guarded(), self._writing():
            now = self._db.execute("SELECT epoch, generation, upto FROM meta").fetchone()
            if now != (epoch, seen.generation, seen.upto):
                self._db.execute("ROLLBACK")
                return False
            self._db.execute(
                "UPDATE meta SET generation = ?, upto = ?, count = ?, tokens = ?, signature = ?",
                (words.generation, words.upto, words.count, sum(words.tokens), words.signature),
            )
        return True

    def vectors(
        self, which: tuple[int, int, int] | list[int], dimensions: int
    ) -> tuple[list[int], list[bytes]]:
        """Numbers and vectors; `which` is (after, upto, limit) of numbers, or up to 500 of them."""
        own, width = self.embedder, 2 * dimensions
        with self._guarded(), _decoding():
            if isinstance(which, tuple):
                ids, _, blobs = read_vectors(self._db, own, which, width, self._sealer)
            else:
                ids, _, blobs = read_some_vectors(self._db, which, width, self._sealer)
        return ids, blobs

    def move_ann(self, before: AnnCheckpoint, after: AnnCheckpoint) -> bool:
        """Say something new of the ANN index; False where `before` does not hold any more."""
        with self._guarded(), self._writing():
            return move_ann(self._db, self.embedder, before, after)

    def ann_embedders(self) -> list[str]:
        """Whose vectors may lie in an ANN index."""
        with self._guarded():
            return [row[0] for row in self._db.execute("SELECT embedder FROM ann")]

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


def _placeholders(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))
