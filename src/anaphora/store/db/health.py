"""The state of the database: what `doctor` and `stats` tell about it.

It reads everything once, changes nothing, and makes no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from anaphora.errors import StoreError
from anaphora.store.db import driver, sqlite
from anaphora.store.db.engine import Database
from anaphora.store.db.revision import REVISION_TABLE

# Without these a server acknowledges what is not on its disk, or tears pages when it fails
# (https://www.postgresql.org/docs/current/wal-reliability.html).
_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


@dataclass(frozen=True, slots=True)
class TruthHealth:
    """The state of the database at `location`.

    `kind` is "sqlite" or "postgresql", `version` that of the library or the server, `revision`
    that of the schema (None before the first write). `wal_is_safe` says whether this SQLite has
    the fix for the corruption of write-ahead logs; without it, and on PostgreSQL, `journal` is
    not "wal". `problems` is empty when all is well.
    """

    location: str
    kind: str
    version: str
    revision: str | None
    journal: str | None = None
    wal_is_safe: bool | None = None
    bytes: int | None = None
    problems: tuple[str, ...] = ()


def check_truth(truth: Database) -> TruthHealth:
    """Look at the whole database, pages and foreign keys too (seconds at a gigabyte).

    A database that cannot be read is a problem in the answer, not an error.
    """
    if truth.path is not None:
        revision, journal, problems, size = None, None, [], None
        try:
            if sqlite.exists(truth.path):
                size = truth.path.stat().st_size
                journal = str(truth.rows("PRAGMA journal_mode", {})[0][0])
                revision = _revision(truth)
                problems = [row[0] for row in truth.rows("PRAGMA integrity_check", {})]
                for table, row_id, parent, _ in truth.rows("PRAGMA foreign_key_check", {}):
                    problems.append(f"row {row_id} of {table} has lost its {parent}")
        except StoreError as error:
            problems.append(str(error))
        return TruthHealth(
            truth.location,
            "sqlite",
            f"{'.'.join(map(str, sqlite.library_version()))} of {driver.NAME}",
            revision,
            journal,
            sqlite.wal_is_safe(sqlite.library_version()),
            size,
            tuple(problem for problem in problems if problem != "ok"),
        )
    try:
        version = str(truth.rows("SHOW server_version", {})[0][0])
        risky = tuple(
            f"the server has {name} = off: what is acknowledged can be lost when it fails"
            for name in _DURABLE
            if truth.rows(f"SHOW {name}", {})[0][0] == "off"
        )
        return TruthHealth(truth.location, "postgresql", version, _revision(truth), problems=risky)
    except StoreError as error:
        return TruthHealth(truth.location, "postgresql", "", None, problems=(str(error),))


def _revision(truth: Database) -> str:
    return str(truth.rows(f"SELECT version_num FROM {REVISION_TABLE}", {})[0][0])  # noqa: S608
