"""What a home holds, byte for byte: every row of every table, every thread file.

In: a closed home. Out: its rows and files, in the recording. The disposable index is left out.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from tools.golden.recording import Recording

__all__ = ["keep_files", "keep_postgresql", "keep_sqlite"]

# What the file system decides: a sealed path is bound to its file's inode, so its length is kept.
OF_THE_DISK = frozenset({"inode"})
BOUND_TO_THE_DISK = frozenset({("source_file", "path")})
# Rows that one statement wrote have the order in which the database came upon them.
UNORDERED = frozenset({("tombstone", "owner_id")})
SEALED = "an2:"


def keep_sqlite(database: Path, record: Recording, under: str) -> None:
    """The schema and all rows of a SQLite file."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        named = "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"
        for name, statement in connection.execute(named).fetchall():
            record.keep(f"{under}/schema {name}", statement)
            _keep_rows(
                connection.execute(f'SELECT * FROM "{name}"'), record, f"{under}/rows {name}"
            )
        indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
        record.keep(f"{under}/indexes", connection.execute(indexes).fetchall())


def keep_postgresql(url: str, record: Recording, under: str) -> None:
    """The columns and all rows of a PostgreSQL database."""
    import psycopg

    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
        ).fetchall()
        record.keep(f"{under}/columns", columns)
        for name in sorted({column[0] for column in columns}):
            every = connection.execute(f'SELECT * FROM "{name}"')
            _keep_rows(every, record, f"{under}/rows {name}")


def keep_files(home: Path, record: Recording, under: str) -> None:
    """The bytes of every file that is not the index, a lock, a database or its journal."""
    for place in sorted(home.rglob("*")):
        name = place.relative_to(home).as_posix()
        passed = name.startswith("index/") or ".db" in name or name.endswith(".lock")
        if place.is_file() and not passed:
            record.keep(f"{under}/file {name}", place.read_bytes())


def _keep_rows(found: Any, record: Recording, name: str) -> None:
    columns = [column[0] for column in found.description]
    table = name.rsplit(" ", 1)[1]
    rows = [
        {
            column: _comparable(table, column, value)
            for column, value in zip(columns, row, strict=True)
            if column not in OF_THE_DISK
        }
        for row in found.fetchall()
    ]
    for column in columns:
        if (table, column) in UNORDERED:
            record.keep(f"{name}, {column}", sorted(row.pop(column) for row in rows))
    record.keep(name, sorted(rows, key=repr))


def _comparable(table: str, column: str, value: Any) -> Any:
    if isinstance(value, memoryview):
        return bytes(value)
    if (table, column) in BOUND_TO_THE_DISK and value.startswith(SEALED):
        return f"sealed, {len(value)} characters"
    return value
