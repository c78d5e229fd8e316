"""What checks, backups and moves of a home read beside its records: counts, ids, a probe, a copy.

On SQLite none of it imports SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.errors import StoreError
from anaphora.store.db import sqlite, statements
from anaphora.store.db.faults import explain
from anaphora.store.db.revision import REVISION_TABLE
from anaphora.store.namespace import ids_named

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

_ALONE = (
    "SELECT record_id FROM record "
    "WHERE namespace = :namespace AND kind = 'memory' AND same_key = :same_key"
)
_NOTES = (
    "SELECT kind, COUNT(*), SUM(CASE WHEN valid_until IS NULL AND forgotten_at IS NULL "
    "THEN 1 ELSE 0 END) FROM record WHERE namespace = :namespace "
    "AND kind IN ('observation', 'diary') GROUP BY kind"
)
_KINDS = "SELECT record_id, kind FROM record WHERE namespace = :namespace AND record_id IN ({})"


THREADS = "SELECT COUNT(*) FROM thread WHERE deleted = 0"
"""Threads in the database: on a server, or in a home restored from one."""
MEMORIES = (
    "SELECT COUNT(*) FROM record WHERE kind = 'memory' AND forgotten_at IS NULL "
    "AND valid_until IS NULL"
)
"""Memories that hold now, in all namespaces."""
JOBS = "SELECT COUNT(*) FROM session_job"
"""Jobs that wait, in all namespaces."""


def count_rows(database: Database, statement: str) -> int:
    """The count of one of these; 0 for a database that is not made yet, which gives no row."""
    return sum(int(count) for (count,) in database.rows(statement, {}))


def note_counts(truth: Database, namespace: str) -> dict[str, tuple[int, int]]:
    """How many notes there are of each kind, and how many of them are current."""
    rows = truth.rows(_NOTES, {"namespace": namespace})
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}


def records_with_key(truth: Database, namespace: str, same_key: str) -> set[str]:
    """The ids of memories with this identity, as it is stored (sealed, in a sealed home)."""
    rows = truth.rows(_ALONE, {"namespace": namespace, "same_key": same_key})
    return {row[0] for row in rows}


def kinds_of(truth: Database, namespace: str, record_ids: Iterable[str]) -> dict[str, str]:
    """Of which kind the records with these ids are, for those that there are."""
    kinds: dict[str, str] = {}
    for parameters, names in ids_named(record_ids):
        rows = truth.rows(_KINDS.format(names), {"namespace": namespace, **parameters})
        kinds.update((row[0], row[1]) for row in rows)
    return kinds


_PROBE_SECONDS = 2.0
"""How long a probe waits for a writer: most writes take milliseconds."""


def probe(truth: Database, token: str) -> None:
    """Write a row and take it out again, in one transaction that reaches the disk.

    `token` is an id that nothing else has. `StoreError` and its kinds where that fails.
    """
    with truth.write("default", patience=_PROBE_SECONDS) as write:
        # Numbers below 1 belong to no change, so no index ever looks at this row; one with the
        # same number waits until this transaction has ended, and taken the row out again.
        row = {"namespace": "default", "seq": -1, "kind": "probe", "owner_id": token}
        statements.insert(write.connection, "tombstone", [row])
        where = (("namespace", 1), ("seq", 1))
        statements.delete(write.connection, "tombstone", where, ("default", -1))


def copy_database(source: Path, target: Path) -> dict[str, Any]:
    """Copy a SQLite database that is in use, as of one moment; nothing when there is none.

    SQLite's own online backup (https://sqlite.org/backup.html) in a single step: one read
    transaction, beside which writers go on. The copy is one file without a journal.
    """
    from anaphora.store.db.driver import dbapi2

    if not sqlite.exists(source) or source.stat().st_size == 0:
        return {}
    original = sqlite.connect(source)
    try:
        copy = dbapi2.connect(str(target), isolation_level=None)
        try:
            original.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            problems = [row[0] for row in copy.execute("PRAGMA integrity_check")]
            if problems != ["ok"]:
                raise StoreError("back up", source, f"it is damaged: {problems[0]}")
            tables = copy.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
            names = [name for (name,) in tables.fetchall() if not name.startswith("sqlite_")]
            schema = None
            if REVISION_TABLE in names:
                names.remove(REVISION_TABLE)
                schema = copy.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()[0]  # noqa: S608
            rows = {
                name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
                for name in names
            }
            memories = copy.execute(MEMORIES).fetchone()[0] if "record" in names else 0
            return {"database": "sqlite", "schema": schema, "rows": rows, "memories": memories}
        finally:
            copy.close()
    except dbapi2.Error as error:
        raise explain(error, "back up", source) from error
    finally:
        original.close()
