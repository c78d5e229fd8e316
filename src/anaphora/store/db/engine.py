"""The database of a home: opened when it is first needed, read and written in transactions.

`open_database` takes the path of a SQLite file, or a URL; `Database` has `read()`,
`write(namespace)`, `version(namespace)` and plain `rows()`. On SQLite nothing imports SQLAlchemy
(0.5 s) but making tables that the file lacks. It never reads the environment, and no error of a
driver leaves it: `faults.explain` names them all.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import WeakSet

from anaphora.errors import AnaphoraError, Closed, InvalidInput, Locked, StoreError
from anaphora.store.db import sqlite, statements
from anaphora.store.db.faults import BUSY_SECONDS, explain, was_in_the_way
from anaphora.store.db.revision import check_revision
from anaphora.store.db.tables import ADDED, TABLES
from anaphora.store.escaping import REFUSED, escape, unescape_rows

if TYPE_CHECKING:
    from sqlalchemy import Engine

_POSTGRES = re.compile(r"postgres(ql)?(\+psycopg)?://", re.IGNORECASE)
_FILE_URL = "sqlite:///"
# Databases with connections, by which it is known whether a searched file may be closed.
_in_use: WeakSet[Database] = WeakSet()
# What must be neither used nor closed: connections that a parent process opened before a fork, and
# searched files to which others have connections.
_inherited: list[object] = []


def open_database(database: Path | str) -> Database:
    """The database at `database`: a path, a `sqlite:///` URL or a `postgresql://` URL.

    Touches nothing yet: the file and its tables are made when the database is first used.
    `InvalidInput` for any other kind of URL.
    """
    if isinstance(database, Path):
        return Database(path=database)
    if _POSTGRES.match(database):
        return Database(url="postgresql+psycopg://" + database.split("://", 1)[1])
    if database.startswith(_FILE_URL):
        database = database[len(_FILE_URL) :]
    if "://" in database or database in {"", ":memory:"}:
        raise InvalidInput(
            "database", _hide_password(database), "expected a path or a postgresql:// URL"
        )
    return Database(path=Path(database))


_ERASURES: Final = ""
"""The head that counts erased namespaces. No namespace has this name."""
_LINKINGS: Final = "/links"
"""The head that counts changes of links, in all namespaces. No namespace has this name either."""
# Count forgettings that left words in the files, and those after which the files were cleaned.
_FORGETTINGS: Final = "/forgettings"
_CLEANINGS: Final = "/cleanings"
_COUNTERS: Final = frozenset((_ERASURES, _LINKINGS, _FORGETTINGS, _CLEANINGS))
Scrubbing: TypeAlias = bool | Literal["later"]
"""Whether the files are scrubbed of what a write removes: with it, or once `clean` is called."""


@dataclass(slots=True)
class Write:
    """A write under way: its connection (the driver's of a file, SQLAlchemy's of a server), and the
    next sequence numbers of its namespace.

    `before` is the number that it began at. `audit` is what the namespace's head says of its audit
    trail, `now` the clock of the home. `is_clean` says of an ended one that was to be scrubbed
    whether it was.
    """

    connection: Any
    namespace: str
    seq: int
    audit: str | None
    now: Callable[[], datetime]
    is_clean: bool = True
    traces: set[bytes] | None = None
    """Of a write that is to be scrubbed, what its files have of the rows that it removes."""
    before: int = field(init=False)

    def __post_init__(self) -> None:
        self.before = self.seq

    def take(self, count: int = 1) -> range:
        """The next `count` sequence numbers. Numbers of a write that fails are given out again."""
        first_number = self.seq + 1
        self.seq += count
        return range(first_number, first_number + count)

    def count_linking(self) -> None:
        """Count a change of links, which takes no number: followers need not read anything."""
        self.count(_LINKINGS)

    def count(self, counter: str) -> int:
        """Add one to a counter of the database; what it is then."""
        return _count(self.connection, counter)

    @property
    def changed(self) -> bool:
        """Whether any number was taken."""
        return self.seq != self.before


@dataclass(slots=True)
class _OpenFile:
    """A connection to a file, and which files it and its log are."""

    connection: Any
    files: sqlite.Files

    @classmethod
    def open(cls, path: Path) -> _OpenFile:
        return cls(sqlite.connect(path), sqlite.files_of(path))

    def refuse_replaced(self, path: Path) -> None:
        """`StoreError` where the file was deleted or replaced since: what was just committed may be
        in a file that can no longer be opened."""
        (database, log), files = self.files, sqlite.files_of(path)
        # The log can be made by the first write of a connection, and stays while that is open.
        self.files = database, log or files[1]
        if files != self.files:
            reason = "its file was deleted or replaced: this change may be lost; reopen the home"
            raise StoreError("write", path, reason)


class Database:
    """One database. Safe to share between threads; a forked child opens its own connections."""

    def __init__(self, *, path: Path | None = None, url: str | None = None) -> None:
        if (path is None) == (url is None):
            raise InvalidInput("database", path, "expected a path or a URL")
        self.path = path
        self._url = url
        self._opening = threading.RLock()
        self._writing = threading.Lock()
        self._engine: Engine | None = None
        self._idle: list[_OpenFile] = []
        self._is_made = False
        self._reader: sqlite.SqliteReader | None = None
        self._searched: sqlite.SearchedFile | None = None
        self._cleaning = threading.Lock()
        self._owed: dict[int, set[bytes]] = {}
        """The traces of this process's own forgettings that are not cleaned yet, by number."""
        self._closed = False
        self._process = os.getpid()
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        """What says when entries of an audit trail were made."""
        self.known_form: object = None
        """The sealer of which it is known that the rows that are here are of its form."""

    @property
    def location(self) -> str:
        """Where it is, for people: the path, or the URL without its password."""
        return str(self.path) if self.path else _hide_password(self._url or "")

    @contextmanager
    def read(self) -> Iterator[Any]:
        """A transaction that sees one moment: what commits meanwhile is not in it."""
        with self._transaction("read") as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Database]:
        """The database as of now, for several reads that must agree: by `rows`.

        A file that does not exist yet is not made: it has no rows anyway.
        """
        if self.path is not None and not self.path.exists():
            yield self
            return
        with self.read() as connection:
            yield _TransactionSnapshot(self.path, self._url, connection)

    @contextmanager
    def write(
        self, namespace: str, *, scrub: Scrubbing = False, patience: float = BUSY_SECONDS
    ) -> Iterator[Write]:
        """A transaction that holds the namespace's head counter until it ends.

        So the order of sequence numbers is the order of commits. When it returns, the change is on
        the disk; when the body raises, nothing of it is, and no number is lost. `ReadOnly`,
        `DiskFull` or `StoreError` when the database refuses, and `StoreError` where its file was
        deleted or replaced while it was open. With `scrub` the files are scrubbed, too, which syncs
        them: the commit leaves that to it; "later" counts that `clean` is due. It waits `patience`
        seconds for other writers of a file, then raises `Locked`.
        """
        with self._turn(patience), ExitStack() as stack:
            is_later = scrub == "later" and self.path is not None
            change = self._begin(stack, namespace, synced=is_later or not scrub, patience=patience)
            if scrub and self.path is not None:
                # Before anything is removed: where no more files can be opened, nothing is.
                self._searchable(self.path)
                change.traces = set()
            yield change
            if change.changed:
                statements.advance(change.connection, namespace, change.seq)
                number = change.count(_FORGETTINGS) if is_later else 0
        if change.changed and is_later:
            self._owed[number] = change.traces or set()
        elif change.changed and scrub:
            change.is_clean = self.scrub(change.traces or ())

    def uncleaned(self) -> int:
        """How many forgettings left their words in the files, until `clean` is called."""
        return self.version(_FORGETTINGS) - self.version(_CLEANINGS)

    def clean(self, also: Callable[[], object]) -> bool:
        """Scrub the files of what forgetting left there, and do what `also` belongs to it.

        Whether that was possible: else it stays due, also where this process ends meanwhile. Of
        what another process forgot no traces are known: then the file is written anew.
        """
        with self._cleaning:
            upto, done = self.version(_FORGETTINGS), self.version(_CLEANINGS)
            due = range(done + 1, upto + 1)
            if not due:
                return True
            traces = set[bytes]().union(*(self._owed.get(number, ()) for number in due))
            if not self.scrub(traces, anew=not self._owed.keys() >= set(due)):
                return False
            also()
            with self._turn(), self._transaction("write") as write:
                cleaned, _ = statements.lock(write, _CLEANINGS)
                statements.advance(write, _CLEANINGS, max(cleaned, upto))
            # Others may add to it meanwhile: so it is neither walked through nor replaced.
            for number in tuple(self._owed):
                if number <= upto:
                    del self._owed[number]
            return True

    def erase(self, namespace: str) -> None:
        """Delete every row of a namespace, its head too: it was never there. `StoreError`.

        `erasures` counts it, so that other processes drop what they know of it.
        """
        if self.path is not None and not sqlite.exists(self.path):
            return
        with self._turn(), self._transaction("write") as write:
            _count(write, _ERASURES)
            for table in TABLES.values():
                if "namespace" in table.key:
                    statements.delete(write, table.name, (("namespace", 1),), (namespace,))

    def erasures(self) -> int:
        """How many namespaces were ever erased."""
        return self.version(_ERASURES)

    def version(self, namespace: str) -> int:
        """The last sequence number committed in `namespace`, 0 before the first write."""
        rows = self.rows(
            "SELECT seq FROM head WHERE namespace = :namespace", {"namespace": namespace}
        )
        return int(rows[0][0]) if rows else 0

    def namespaces(self) -> list[str]:
        """Every namespace that was ever written to, in order."""
        rows = self.rows("SELECT namespace FROM head ORDER BY namespace", {})
        return [str(row[0]) for row in rows if row[0] not in _COUNTERS]

    def linkings(self, namespace: str) -> tuple[tuple[str, int], ...]:
        """What changes with every change of a namespace, and of the links in any."""
        rows = self.rows(
            "SELECT namespace, seq FROM head WHERE namespace IN (:namespace, :links)",
            {"namespace": namespace, "links": _LINKINGS},
        )
        return tuple(sorted(rows))

    def rows(
        self, statement: str, parameters: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        """All rows of a plain SELECT with `:named` parameters, in SQL that both databases know.

        For the few reads at the start of every command. Texts are escaped and unescaped here. A
        SQLite file that does not exist yet has no rows, and is not made.
        """
        cells = dict(parameters)
        for name, cell in parameters.items():
            if isinstance(cell, str) and REFUSED.search(cell):
                cells[name] = escape(cell)
        return unescape_rows(self._plain_rows(statement, cells))

    @property
    def log(self) -> Path | None:
        """The write-ahead log beside the database; None on a server."""
        return None if self.path is None else self.path.with_name(self.path.name + "-wal")

    def scrub(self, traces: Collection[bytes] = (), *, anew: bool = False) -> bool:
        """Leave nothing of what was deleted in the database's files; whether that was possible.

        Deleted cells are overwritten as they are deleted (`secure_delete`); older copies of their
        pages are in the write-ahead log until it is merged and cut. SQLite also leaves a copy of
        one row in some hundred, where it was moved from before: a file with one of these `traces`
        is written anew, and with `anew` any. False where another process holds on to the log, or
        the room lacks. Always True on a server, whose own vacuum does the like. `StoreError` when
        the disk refuses.
        """
        if self.path is None or not sqlite.exists(self.path):
            return True
        with self._borrow(self.path) as opened:
            if not sqlite.cut_log(opened.connection, self.path):
                return False
            if anew or (traces and self._searchable(self.path).holds_any(traces)):
                return sqlite.write_anew(opened.connection, self.path)
            return True

    def ensure(self) -> None:
        """Make the database now. `SchemaTooNew` or `SchemaTooOld` for one of another revision."""
        self._make()

    def close(self) -> None:
        """Close every connection. One used afterwards raises `Closed`; closing again does not."""
        with self._opening:
            self._closed = True
            engine, self._engine = self._engine, None
            reader, self._reader = self._reader, None
            idle, self._idle = self._idle, []
            searched, self._searched = self._searched, None
            _in_use.discard(self)
        if self._process != os.getpid():
            _inherited.append((engine, reader, idle, searched))
            return
        for opened in idle:
            opened.connection.close()
        if reader is not None:
            reader.close()
        if engine is not None:
            engine.dispose()
        if searched is not None:
            if self.path in [database.path for database in list(_in_use)]:
                _inherited.append(searched)
            else:
                searched.close()

    def _begin(self, stack: ExitStack, namespace: str, *, synced: bool, patience: float) -> Write:
        """A write that has its namespace's head, begun again where another one was in the way.

        A database that knows no READ COMMITTED refuses a writer that has waited for the head
        (40001). By then nothing was done, so nothing is done twice. Such waiting is in no order,
        and one writer of several may lose any number of times: only time ends it, as it ends a wait
        for a lock.
        """
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                with ExitStack() as begun:
                    connection = begun.enter_context(
                        self._transaction("write", synced=synced, patience=patience)
                    )
                    seq, audit = statements.lock(connection, namespace)
                    change = Write(connection, namespace, seq, audit, self.clock)
                    stack.enter_context(begun.pop_all())
                    return change
            except StoreError as error:
                if not was_in_the_way(error) or time.monotonic() > until:
                    raise

    def _plain_rows(
        self, statement: str, parameters: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        if self.path is not None:
            self._check()
            reader = self._reader or self._open_reader(self.path)
            return reader.rows(statement, parameters) if reader else []
        from sqlalchemy import text

        with self._transaction("read", isolation_level="AUTOCOMMIT") as connection:
            return [tuple(row) for row in connection.execute(text(statement), parameters)]

    def _open_reader(self, path: Path) -> sqlite.SqliteReader | None:
        """The connection for plain reads; None as long as there is no file."""
        with self._opening:
            if self._reader is None and sqlite.exists(path):
                reader = sqlite.SqliteReader(path)
                try:
                    revision = reader.revision()
                    if revision is None:
                        self._make()
                    else:
                        check_revision(revision, path)
                except AnaphoraError:
                    reader.close()
                    raise
                self._reader = reader
            return self._reader

    def _make(self, *, reading: bool = False) -> None:
        """Make the tables that are not there yet. To read, those that came later may be missing."""
        self._check()
        with self._opening:
            if self.path is None:
                self._connect()
            elif not self._is_made:
                self._is_made = sqlite.has_tables(self.path, TABLES)
                if self._is_made or (
                    reading and sqlite.has_tables(self.path, TABLES.keys() - ADDED)
                ):
                    sqlite.prepare_file(self.path)
                else:
                    from anaphora.store.db import connecting

                    connecting.make_in_file(self.path)
                    self._is_made = True

    def _connect(self) -> Engine:
        """The engine on a server's database."""
        self._check()
        with self._opening:
            if self._engine is None:
                from anaphora.store.db import connecting

                self._engine = connecting.open_postgresql(self._url or "", self.location)
            return self._engine

    @contextmanager
    def _transaction(
        self,
        operation: str,
        *,
        synced: bool = True,
        patience: float = BUSY_SECONDS,
        **options: Any,
    ) -> Iterator[Any]:
        if self.path is not None:
            with self._file_transaction(self.path, operation, synced, patience) as connection:
                yield connection
            return
        engine = self._connect()
        from sqlalchemy.exc import SQLAlchemyError

        level = "REPEATABLE READ" if operation == "read" else "READ COMMITTED"
        try:
            with engine.connect() as connection:
                connection.execution_options(**{"isolation_level": level, **options})
                with connection.begin():
                    yield connection
        except SQLAlchemyError as error:
            raise explain(error, operation, self.location) from error

    @contextmanager
    def _file_transaction(
        self, path: Path, operation: str, synced: bool, patience: float
    ) -> Iterator[Any]:
        self._make(reading=operation == "read")
        try:
            with ExitStack() as stack:
                opened = stack.enter_context(self._borrow(path))
                if not synced:
                    stack.enter_context(sqlite.left_unsynced(opened.connection))
                # Which lock is taken: waiting for one later can only fail.
                with sqlite.waiting(opened.connection, patience):
                    opened.connection.execute("BEGIN" if operation == "read" else "BEGIN IMMEDIATE")
                yield opened.connection
                opened.connection.commit()
                if operation == "write":
                    opened.refuse_replaced(path)
        except sqlite.Error as error:
            raise explain(error, operation, self.location) from error

    @contextmanager
    def _borrow(self, path: Path) -> Iterator[_OpenFile]:
        """A connection that no other thread uses meanwhile."""
        with self._opening:
            opened = self._idle.pop() if self._idle else _OpenFile.open(path)
        try:
            yield opened
        finally:
            opened.connection.rollback()
            with self._opening:
                if self._closed:
                    opened.connection.close()
                else:
                    self._idle.append(opened)

    def _searchable(self, path: Path) -> sqlite.SearchedFile:
        """The file at `path`, which exists, to search it: always the same one."""
        with self._opening:
            if self._searched is None:
                self._searched = sqlite.SearchedFile(path)
            return self._searched

    @contextmanager
    def _turn(self, patience: float = BUSY_SECONDS) -> Iterator[None]:
        """Threads of one process wait here: SQLite's own way of waiting is not fair."""
        self._check()
        if self.path is None:
            yield
            return
        lock = self._writing
        # A limit, so that a write begun inside another one of the same thread ends in an error.
        if not lock.acquire(timeout=patience):
            raise Locked("write", self.location, "another part of this program")
        try:
            yield
        finally:
            lock.release()

    def _check(self) -> None:
        if self._closed:
            raise Closed
        if self._process != os.getpid():
            _inherited.append((self._engine, self._reader, self._idle, self._searched))
            self._engine, self._reader, self._idle, self._searched = None, None, [], None
            self._opening, self._writing = threading.RLock(), threading.Lock()
            self._process = os.getpid()
        _in_use.add(self)


class _TransactionSnapshot(Database):
    """A database within one transaction."""

    def __init__(self, path: Path | None, url: str | None, connection: Any) -> None:
        super().__init__(path=path, url=url)
        self._connection = connection

    def _plain_rows(
        self, statement: str, parameters: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        if self.path is not None:
            try:
                rows: list[tuple[Any, ...]]
                rows = self._connection.execute(statement, parameters).fetchall()
            except sqlite.Error as error:
                if sqlite.lacks_added(error):
                    return []
                raise
            return rows
        from sqlalchemy import text

        return [tuple(row) for row in self._connection.execute(text(statement), parameters)]


def _count(connection: Any, counter: str) -> int:
    count, _ = statements.lock(connection, counter)
    statements.advance(connection, counter, count + 1)
    return count + 1


def _hide_password(url: str) -> str:
    url = re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", url)
