"""A file of an index (SQLite): derived from the database, it may be torn or gone at any time.

SQLite lets any number of processes read and write it. What is deleted is overwritten at once, and
has left the journal, too, when `purge` returns True.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from anaphora.errors import Tampered
from anaphora.index.maintenance import IndexBusy, IndexLost
from anaphora.store.db import sqlite
from anaphora.store.db.driver import dbapi2
from anaphora.system.shortages import find_shortage

# If the file is busy for longer, memory answers instead.
_BUSY_MS: Final = 30
_BUSY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY")
_REFUSED: Final = ("SQLITE_CANTOPEN", "SQLITE_IOERR")
_COMPANIONS: Final = ("", "-wal", "-shm", "-journal")
_inherited: list[Any] = []
_META: Final = """CREATE TABLE meta (
  only INTEGER PRIMARY KEY CHECK (only = 1), format TEXT NOT NULL, change INTEGER NOT NULL)"""


class IndexFile:
    """One connection to a file, for one thread at a time (the caller holds a lock).

    `db` runs the statements of its tables; its transactions are `reading` and `writing`.
    """

    def __init__(
        self, path: Path | None, schema: str, form: str, *, read_only: bool = False
    ) -> None:
        """Open the file, or one in memory if `path` is None; a new one gets the tables of `schema`.

        One of another form is made anew. Raises IndexBusy, and IndexLost if it is torn.
        """
        self.path = path
        self.read_only = read_only
        self.wants_purge = False
        self._identity: tuple[int, int] = (0, 0)
        self._process = os.getpid()
        try:
            if path is None:
                uri = ":memory:"
            elif read_only:
                # In a read-only directory the shared memory of the journal cannot be created.
                uri = path.absolute().as_uri() + "?mode=ro&immutable=1"
            else:
                uri = path.absolute().as_uri() + "?mode=rwc"
            self.db: Any = dbapi2.connect(
                uri, uri=path is not None, check_same_thread=False, isolation_level=None
            )
        except dbapi2.Error as error:
            raise _translate(error) from error
        try:
            self._prepare(schema, form)
            if path is not None:
                status = path.stat()
                self._identity = (status.st_dev, status.st_ino)
        except OSError as error:
            self.db.close()
            raise IndexLost("the index file went away") from error
        except BaseException:
            self.db.close()
            raise

    def close(self) -> None:
        """Close the connection; the journal is deleted with the last one."""
        if self._process == os.getpid():
            self.db.close()
        else:
            # A forked child must not end what its parent has open.
            _inherited.append(self.db)

    @property
    def on_disk(self) -> bool:
        """Whether it is a file that can be written."""
        return self.path is not None and not self.read_only

    def current(self) -> bool:
        """Whether the open file is still the one at its path, and of this process."""
        if self.path is None:
            return True
        if self._process != os.getpid():
            return False
        try:
            status = self.path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def outside_version(self) -> int:
        """A number that changes whenever another connection has written."""
        with self.guarded():
            return int(self.db.execute("PRAGMA data_version").fetchone()[0])

    def problems(self) -> tuple[str, ...]:
        """The problems of the file that SQLite finds."""
        with self.guarded():
            messages = [row[0] for row in self.db.execute("PRAGMA integrity_check")]
        return () if messages == ["ok"] else tuple(messages)

    def purge(self) -> bool:
        """Truncate the journal, which still contains deleted content; whether that succeeded."""
        with self.guarded():
            busy = self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        self.wants_purge = bool(busy)
        return not busy

    @contextmanager
    def guarded(self, *, decoding: bool = False) -> Iterator[None]:
        """Raise IndexLost and IndexBusy for SQLite's errors.

        `decoding`: content that cannot be decoded is torn. It can even garble SQLite's messages.
        """
        try:
            yield
        except dbapi2.Error as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise _translate(error) from error
        except Tampered as error:
            raise IndexLost(str(error)) from error
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            if not decoding:
                raise
            raise IndexLost(f"what is in it cannot be read: {error!r}") from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction that reads."""
        with self.guarded(decoding=True):
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                if self.db.in_transaction:
                    self.db.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[int]:
        """A write transaction with its change number; the body may roll it back."""
        if self.read_only:
            raise IndexBusy("the index cannot be written here")
        with self.guarded():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                self.db.execute("UPDATE meta SET change = change + 1")
                yield int(self.db.execute("SELECT change FROM meta").fetchone()[0])
                if self.db.in_transaction:
                    self.db.execute("COMMIT")
            finally:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")

    def _prepare(self, schema: str, form: str) -> None:
        with self.guarded(decoding=True):
            self.db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            self.db.execute("PRAGMA secure_delete = ON")
            self.db.execute(f"PRAGMA journal_size_limit = {sqlite.LOG_BYTES}")
            if self.on_disk:
                safe = sqlite.wal_is_safe(sqlite.library_version())
                self.db.execute(f"PRAGMA journal_mode = {'WAL' if safe else 'DELETE'}")
                # Safe if a process is killed; after a power cut the file is rebuilt.
                self.db.execute("PRAGMA synchronous = NORMAL")
            if not self._is_of(form) and not self.read_only:
                self.db.execute("BEGIN IMMEDIATE")
                # Another process may have been first while this one waited.
                if not self._is_of(form):
                    self._make_anew(schema, form)
                self.db.execute("COMMIT")
                self.purge()
            if not self._is_of(form):
                raise IndexLost("the index has another format")

    def _is_of(self, form: str) -> bool:
        is_made = self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
        row = self.db.execute("SELECT format FROM meta").fetchone() if is_made else None
        return row is not None and row[0] == form

    def _make_anew(self, schema: str, form: str) -> None:
        """Make the tables, in place of those of another version or key."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in self.db.execute(names).fetchall():
            self.db.execute(f'DROP TABLE "{name}"')
        for statement in (_META, *schema.split(";\n")):
            self.db.execute(statement)
        self.db.execute("INSERT INTO meta VALUES (1, ?, 0)", (form,))


def placeholders(values: Sized) -> str:
    """A mark for each value of a statement's list."""
    return ",".join("?" * len(values))


def remove_index_file(path: Path) -> None:
    """Remove a file with its journal, open or not: `current` of an open one is false then.

    Raises OSError.
    """
    for companion in _COMPANIONS:
        path.with_name(path.name + companion).unlink(missing_ok=True)


def _translate(error: Exception) -> Exception:
    name = getattr(error, "sqlite_errorname", "") or ""
    # A file that cannot be opened for want of descriptors is well, and must not be removed.
    if name.startswith(_REFUSED) and (shortage := find_shortage()):
        return IndexBusy(shortage)
    return (IndexBusy if name.startswith(_BUSY) else IndexLost)(str(error))
