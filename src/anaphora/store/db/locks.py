"""Locks that a database server keeps: among all processes of all machines that use it.

A lock goes with its transaction, however the process ends (PostgreSQL's advisory locks).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database


@contextmanager
def hold_server_lock(database: Database, key: int) -> Iterator[None]:
    """Wait for the lock of this key (64 bits, signed) and hold it."""
    from sqlalchemy import text

    with database.read() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
        yield
