"""SQLite for the database: how a file is made, how a connection is set up, plain reads.

It never imports SQLAlchemy (0.5 s), so that a command starts without it, and it never creates a
file when asked to read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from anaphora.errors import StoreError
from anaphora.store.db.driver import dbapi2
from anaphora.store.db.faults import BUSY_SECONDS, explain
from anaphora.store.db.revision import REVISION_TABLE, check_revision
from anaphora.store.db.tables import ADDED
from anaphora.store.disk import make_directory, sync, sync_directory

# A reader in another process is done in milliseconds; one that is not must not stop forgetting.
_CUT_SECONDS = 2.0
# More than FULL with a rollback journal alone: the folder is synced once the journal is gone, which
# is what commits. Without that a power cut takes back what was acknowledged.
_SYNCED: Final = "PRAGMA synchronous = EXTRA"
_MERGED_PAGES: Final = 1_000
_CHUNK: Final = 1 << 20
LOG_BYTES: Final = 4 << 20
"""How long the file of a write-ahead log stays once all of it is merged. SQLite merges it at about
this size; a large write makes it longer, and without a limit it would stay so."""

Error = dbapi2.Error
Files = tuple[tuple[int, int] | None, tuple[int, int] | None]
"""Which file a database is, and which its log, by device and inode; None for one that is not."""


def library_version() -> tuple[int, int, int]:
    """The version of the SQLite library that the driver uses."""
    major, minor, patch = dbapi2.sqlite_version_info
    return (major, minor, patch)


def wal_is_safe(version: tuple[int, int, int]) -> bool:
    """Whether that SQLite has the fix for the WAL-reset corruption.

    Fixed in 3.51.3, carried back to 3.50.7 and 3.44.6 (https://sqlite.org/wal.html).
    """
    if version >= (3, 51, 3):
        return True
    return any(
        (*line, fix) <= version < (line[0], line[1] + 1, 0)
        for line, fix in (((3, 50), 7), ((3, 44), 6))
    )


def prepare_file(path: Path) -> None:
    """Make the database file when there is none, private and durable, and set its journal.

    Safe when several processes do it at once. Raises `ReadOnly`, `DiskFull` or `StoreError`.
    """
    if _is_prepared(path):
        return
    from filelock import FileLock

    try:
        make_directory(path.parent)
        with FileLock(f"{path}.lock", timeout=BUSY_SECONDS, mode=0o600):
            if not path.exists():
                # 0600 from the first moment on: SQLite gives the journals the mode of the file.
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            sync_directory(path.parent)
            _set_journal(path)
    except OSError as error:  # among them filelock's own Timeout
        raise explain(error, "create", path) from error


def files_of(path: Path) -> Files:
    """Which files stand at `path` now, in 4 µs. `StoreError` when that cannot be told."""
    return _identity(str(path)), _identity(f"{path}-wal")


def _identity(place: str) -> tuple[int, int] | None:
    try:
        status = os.stat(place)  # noqa: PTH116 - called at every write; Path is slower
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise explain(error, "open", place) from error
    return status.st_dev, status.st_ino


def exists(path: Path) -> bool:
    """Whether there is a file at `path`. `StoreError` when that cannot be told."""
    try:
        return path.exists()
    except OSError as error:
        raise explain(error, "open", path) from error


def connect(path: Path) -> Any:
    """A connection to the existing database at `path`, in autocommit, with durable settings.

    Where the place cannot be written it reads only. Usable from any one thread at a time.
    """
    try:
        try:
            return _connect(path, "mode=rw")
        except Error as error:
            if not _is_frozen(path, error):
                raise
            # A WAL database without its side files opens on read-only media in no other way.
            return _connect(path, "mode=ro&immutable=1")
    except Error as error:
        raise explain(error, "open", path) from error


@contextmanager
def left_unsynced(connection: Any) -> Iterator[None]:
    """Let a transaction end without waiting for the disk: where there is a log, `cut_log` does.

    Until then nothing may merge the log from here: what is merged unsynced would be lost with it.
    """
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA synchronous = OFF")
    try:
        yield
    finally:
        # Within a transaction nothing of this can be changed.
        connection.rollback()
        connection.execute(_SYNCED)
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MERGED_PAGES}")


@contextmanager
def waiting(connection: Any, seconds: float) -> Iterator[None]:
    """Let a connection wait so long for others, instead of `BUSY_SECONDS`."""
    connection.execute(f"PRAGMA busy_timeout = {int(1_000 * seconds)}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1_000 * BUSY_SECONDS}")


def cut_log(connection: Any, path: Path) -> bool:
    """Merge the write-ahead log and cut it to nothing; whether no reader held on to it.

    All that was committed is on the disk then, one way or the other.
    """
    try:
        with waiting(connection, _CUT_SECONDS):
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            # It may not have been synced either, nor its name. Where it is gone, it was merged.
            with suppress(FileNotFoundError), Path(f"{path}-wal").open("r+b") as log:
                sync(log.fileno())
            sync_directory(path.parent)
    except (Error, OSError) as error:
        raise explain(error, "scrub", path) from error
    return not busy


class SearchedFile:
    """The file of a database, to look for bytes in it. `StoreError` where it cannot be read.

    Closing it gives up all locks that SQLite has on that file in this process
    (https://sqlite.org/howtocorrupt.html, 2.2): it stays open as long as any connection.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise explain(error, "open", path) from error

    def holds_any(self, traces: Collection[bytes]) -> bool:
        """Whether any of these bytes stand in it."""
        overlap, part = max(map(len, traces)), b""
        try:
            with self._lock:
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                while chunk := os.read(self._descriptor, _CHUNK):
                    part = part[-overlap:] + chunk
                    if any(trace in part for trace in traces):
                        return True
        except OSError as error:
            raise explain(error, "scrub", self._path) from error
        return False

    def close(self) -> None:
        """Close it, after every connection to it in this process."""
        os.close(self._descriptor)


def write_anew(connection: Any, path: Path) -> bool:
    """Write a database anew as a whole; False where others use it, or there is no room for it."""
    try:
        connection.execute("VACUUM")
    except Error:
        return False
    return cut_log(connection, path)


def lacks_added(error: Exception) -> bool:
    """Whether a read asked for a table that is newer than the home: the next write makes it."""
    return str(error).partition("no such table: ")[2] in ADDED


def has_tables(path: Path, names: Collection[str]) -> bool:
    """Whether there is a database with these tables. `SchemaTooNew` or `SchemaTooOld` for one of
    another revision, which is refused while it is untouched: no journal is set yet."""
    if not exists(path) or not path.stat().st_size:
        return False
    with closing(SqliteReader(path)) as reader:
        revision = reader.revision()
        if revision is None:
            return False
        check_revision(revision, path)
        rows = reader.rows("SELECT name FROM sqlite_master WHERE type = 'table'", {})
    return {row[0] for row in rows}.issuperset(names)


class SqliteReader:
    """Plain reads on a connection of its own, without SQLAlchemy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = connect(path)

    def rows(self, statement: str, parameters: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """All rows of `statement` with its `:named` parameters."""
        try:
            with self._lock:
                rows: list[tuple[Any, ...]] = self._connection.execute(
                    statement, parameters
                ).fetchall()
        except Error as error:
            if lacks_added(error):
                return []
            raise explain(error, "read", self._path) from error
        return rows

    def revision(self) -> str | None:
        """The revision of the schema; None as long as there are no tables of ours."""
        tables = self.rows(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name",
            {"name": REVISION_TABLE},
        )
        if not tables:
            return None
        rows = self.rows(f"SELECT version_num FROM {REVISION_TABLE}", {})  # noqa: S608 - ours
        return str(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._connection.close()


def _connect(path: Path, query: str) -> Any:
    connection = dbapi2.connect(
        f"{path.resolve().as_uri()}?{query}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute(_SYNCED)
        # On macOS alone: wait for the drive, too, as `disk.sync` does.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        connection.execute("PRAGMA trusted_schema = OFF")
        # As on PostgreSQL, where LIKE tells "a" from "A".
        connection.execute("PRAGMA case_sensitive_like = ON")
        # Leave WAL, or refuse the database, when this library would damage it.
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode == "wal" and not wal_is_safe(library_version()):
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            if mode != "delete":
                version = ".".join(map(str, library_version()))
                raise StoreError("open", path, f"SQLite {version} can damage a write-ahead log")
    except BaseException:
        connection.close()
        raise
    return connection


def _wanted_journal() -> str:
    return "wal" if wal_is_safe(library_version()) else "delete"


def _is_prepared(path: Path) -> bool:
    if not exists(path) or path.stat().st_size == 0:
        return False
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return True
    connection = connect(path)
    try:
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return bool(mode == _wanted_journal())
    finally:
        connection.close()


def _set_journal(path: Path) -> None:
    connection = connect(path)
    try:
        # Another process that has it open keeps it in its present mode; the next one tries again.
        connection.execute(f"PRAGMA journal_mode = {_wanted_journal()}")
    except Error as error:
        explained_error = explain(error, "open", path)
        if getattr(error, "sqlite_errorname", "") != "SQLITE_BUSY":
            raise explained_error from error
    finally:
        connection.close()


def _is_frozen(path: Path, error: BaseException) -> bool:
    """Whether `error` comes from a WAL database on read-only media, with nothing left to merge."""
    name = str(getattr(error, "sqlite_errorname", ""))
    if not name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
        return False
    if os.access(path.parent, os.W_OK) or not os.access(path, os.R_OK):
        return False
    log = path.with_name(path.name + "-wal")
    return not log.exists() or log.stat().st_size == 0
