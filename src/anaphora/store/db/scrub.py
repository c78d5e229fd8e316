"""Leaves nothing of what was deleted in the files of a database.

Deleted cells are overwritten as they are deleted (`secure_delete`); older copies of their pages are
in the write-ahead log until it is merged and cut. It never waits long for other readers, and says
when they held on.
"""

from __future__ import annotations

from pathlib import Path

from anaphora.store.db import sqlite
from anaphora.store.db.engine import Database
from anaphora.store.db.faults import explain

# A reader in another process is done in milliseconds; one that is not must not stop forgetting.
_WAIT_MILLISECONDS = 2_000


def log_of(truth: Database) -> Path | None:
    """The write-ahead log beside the database; None on a server."""
    return None if truth.path is None else truth.path.with_name(truth.path.name + "-wal")


def scrub(truth: Database) -> bool:
    """Merge the write-ahead log and cut it to nothing. True when nothing of it is left.

    Always True on a server, whose own vacuum does the like. `StoreError` when the disk refuses.
    """
    if truth.path is None or not sqlite.exists(truth.path):
        return True
    connection = sqlite.connect(truth.path)
    try:
        connection.execute(f"PRAGMA busy_timeout = {_WAIT_MILLISECONDS}")
        held, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite.Error as error:
        raise explain(error, "scrub", truth.path) from error
    finally:
        connection.close()
    return not held
