"""The rows of the index file: its schema, how rows are read with their checks, how they change.

In: a connection inside a transaction. Out: columns, marks, vectors; IndexLost where a row is not
the one that was written. Never begins or ends a transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import Tampered
from anaphora.index.turns.columns import Columns, checksums, empty_columns
from anaphora.index.turns.records import BulkMark, Change, IndexLost, Mark, Record
from anaphora.store.crypto.index import IndexSealer

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
CREATE TABLE bulk (
  embedder TEXT PRIMARY KEY, generation TEXT NOT NULL, upto INTEGER NOT NULL,
  target INTEGER NOT NULL) WITHOUT ROWID;
"""

_VECTORS = "SELECT id, text_hash, parts, checked FROM vectors"


def read_columns(db: Any, after: int, sealer: IndexSealer) -> tuple[Columns, list[str | None]]:
    """Turns after a row id and who spoke them; the column of speakers' codes is left at -1."""
    found = db.execute(
        "SELECT id, thread, position, role, length, flags, ts, text_hash, checked, speaker, digest"
        " FROM turns WHERE id > ? ORDER BY id",
        (after,),
    ).fetchall()
    if not found:
        return empty_columns(), []
    ids, thread, position, role, length, flags, ts, hashes, checked, names, digests = zip(
        *found, strict=True
    )
    numbers = [np.array(c, np.int64) for c in (ids, thread, position, role, length, flags)]
    times = np.array(ts, np.float64)
    owners = (names, digests, _owners(db, thread) if sealer.sealed else ())
    expected = _checks(numbers, times, hashes, owners, sealer)
    if not np.array_equal(expected, np.array(checked, np.int64)):
        raise IndexLost("rows are not the ones that were written")
    decoded = {name: None if name is None else _named(name, sealer) for name in set(names)}
    columns = Columns(
        numbers[0],
        numbers[1].astype(np.int32),
        numbers[2].astype(np.int32),
        numbers[3].astype(np.int8),
        np.full(len(ids), -1, np.int16),
        times,
        numbers[4].astype(np.int32),
        numbers[5].astype(np.int32),
        list(hashes),
    )
    return columns, [decoded[name] for name in names]


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


def read_bulk(db: Any, embedder: str) -> BulkMark:
    """What is said of the bulk of an embedder's vectors."""
    row = db.execute(
        "SELECT generation, upto, target FROM bulk WHERE embedder = ?", (embedder,)
    ).fetchone()
    return BulkMark() if row is None else BulkMark(*row)


def move_bulk(db: Any, embedder: str, before: BulkMark, after: BulkMark) -> bool:
    """Say something new of the bulk; False where something else than `before` is said of it."""
    if read_bulk(db, embedder) != before:
        return False
    db.execute(
        "INSERT OR REPLACE INTO bulk VALUES (?, ?, ?, ?)",
        (embedder, after.generation, after.upto, after.target),
    )
    return True


def read_marks(db: Any, after: int, sealer: IndexSealer) -> dict[str, Mark]:
    """Marks of the threads that were written after a change number."""
    found = db.execute(
        "SELECT id, inode, size, mtime, ctime, seen, count, chain, code FROM threads"
        " WHERE stamp > ?",
        (after,),
    )
    return {
        _named(row[0], sealer): Mark((row[1], row[2], row[3], row[4]), *row[5:]) for row in found
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
    if change.base is not None and (change.dropped or change.mark is None):
        where = "thread = (SELECT code FROM threads WHERE id = ?) AND position >= ?"
        place = (key, change.drop_from)
        lowest = db.execute(f"SELECT min(id) FROM turns WHERE {where}", place).fetchone()[0]  # noqa: S608
        db.execute(f"DELETE FROM turns WHERE {where}", place)  # noqa: S608
    if change.mark is None:
        db.execute("DELETE FROM threads WHERE id = ?", (key,))
        db.execute("UPDATE meta SET epoch = epoch + 1")
        return lowest
    mark = change.mark
    code = db.execute(
        "INSERT INTO threads (id, inode, size, mtime, ctime, seen, count, chain, stamp)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " inode = excluded.inode, size = excluded.size, mtime = excluded.mtime,"
        " ctime = excluded.ctime, seen = excluded.seen, count = excluded.count,"
        " chain = excluded.chain, stamp = excluded.stamp RETURNING code",
        (key, *mark.identity, mark.seen_ns, mark.count, mark.chain, number),
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
    first = (last[0] if last else 0) + 1
    ids = np.arange(first, first + len(records))
    fields = ("position", "role", "length", "flags")
    numbers: list[NDArray[np.int64]] = [ids, np.full(len(records), code)]
    numbers += [np.array([getattr(r, field) for r in records], np.int64) for field in fields]
    times = np.array([r.ts for r in records], np.float64)
    names = [None if r.speaker is None else sealer.name(r.speaker) for r in records]
    owners = (names, [r.digest for r in records], [thread] * len(records))
    checked = _checks(numbers, times, [r.text_hash for r in records], owners, sealer)
    db.executemany(
        "INSERT INTO turns (id, thread, position, role, speaker, ts, length, flags, text_hash,"
        " digest, checked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(key, code, r.position, r.role, name, r.ts, r.length, r.flags, r.text_hash),
                *(r.digest, total),
            )
            for key, r, name, total in zip(
                ids.tolist(), records, names, checked.tolist(), strict=True
            )
        ],
    )


def _owners(db: Any, codes: Sequence[int]) -> list[bytes]:
    """The stored name of the thread of each of these codes; b"" where there is none."""
    names = dict(db.execute("SELECT code, id FROM threads").fetchall())
    return [names.get(code, b"") for code in codes]


def _checks(
    numbers: Sequence[NDArray[np.int64]],
    times: NDArray[np.float64],
    hashes: Sequence[bytes],
    owners: tuple[Sequence[bytes | None], Sequence[bytes], Sequence[bytes]],
    sealer: IndexSealer,
) -> NDArray[np.int64]:
    """What `checked` must hold for each of N rows: a checksum, or in a sealed home a keyed one.

    `owners` are speakers, digests and threads as they are stored: in a sealed home nobody may give
    a row to another one unseen. 100,000 rows take about 0.2 s.
    """
    if not sealer.sealed:
        return checksums(numbers, times, hashes)
    fixed = np.column_stack([*numbers, times.view(np.int64)]).astype("<i8").tobytes()
    width = 8 * (len(numbers) + 1)
    check = sealer.check
    rows = zip(range(0, len(fixed), width), hashes, *owners, strict=True)
    found = (
        check(
            "turn",
            thread,
            # Lengths first: a byte must not move from one column into the next.
            b"%d %d %b%b%b%b"
            % (len(text), len(digest), fixed[at : at + width], text, digest, name or b""),
        )
        for at, text, name, digest, thread in rows
    )
    return np.fromiter(found, np.int64, len(times))


def forget_orphans(db: Any, lowest: int) -> None:
    """Remove what no turn needs any more: without that, a forget would not forget.

    `lowest` is the lowest row id that went.
    """
    db.execute("DELETE FROM texts WHERE hash NOT IN (SELECT text_hash FROM turns)")
    # LanceDB keeps deleted vectors in its files and its graph: the bulk is made again instead.
    db.execute(
        "DELETE FROM bulk WHERE EXISTS (SELECT 1 FROM vectors WHERE vectors.id <= bulk.target"
        " AND vectors.embedder = bulk.embedder AND text_hash NOT IN (SELECT hash FROM texts))"
    )
    for table in ("vectors", "failures"):
        db.execute(f"DELETE FROM {table} WHERE text_hash NOT IN (SELECT hash FROM texts)")  # noqa: S608
    db.execute("UPDATE meta SET epoch = epoch + 1")
    # tantivy keeps deleted words until it merges: the bulk is made again instead.
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
