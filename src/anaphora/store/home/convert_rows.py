"""The rows of the database from one form into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anaphora.calls.progress import Progress
from anaphora.errors import StoreError
from anaphora.store.crypto.columns import Sealer
from anaphora.store.db.table import Table
from anaphora.store.db.tables import TABLES
from anaphora.store.escaping import escape_cell, unescape_cell

_BATCH = 500


def convert_rows(
    place: Path | str, source: Sealer, target: Sealer, number: int, tell: Progress
) -> int:
    """Every row, in one transaction which also notes the conversion's number in the file."""
    if not isinstance(place, Path) or not place.exists():
        return 0
    from anaphora.store.db import sqlite
    from anaphora.store.db.engine import open_database
    from anaphora.store.db.faults import explain

    truth = open_database(place)
    try:
        truth.ensure()
    finally:
        truth.close()
    connection = sqlite.connect(place)
    try:
        connection.execute("BEGIN IMMEDIATE")
        row_count = 0
        # `user_version` is a free number in the file, and it commits with the rows.
        if connection.execute("PRAGMA user_version").fetchone()[0] != number:
            for table in TABLES.values():
                if table.sealed or table.lookup:
                    row_count += _convert_table(connection, table, source, target, tell)
            connection.execute(f"PRAGMA user_version = {number:d}")
        connection.execute("COMMIT")
        # Free pages and the journal still have what stood there before.
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite.Error as error:
        raise explain(error, "convert", place) from error
    finally:
        connection.close()
    if busy:
        reason = "another process keeps it open: close that, then reopen the home"
        raise StoreError("convert", place, reason)
    return row_count


def _convert_table(
    connection: Any, table: Table, source: Sealer, target: Sealer, tell: Progress
) -> int:
    name, columns, changed_columns = table.name, table.sealing, (*table.sealed, *table.lookup)
    # A key may change as its row is converted; that of a table without row numbers never does.
    key_columns: tuple[str, ...] = table.key if table.by_key else ("rowid",)
    key_list, marks = ", ".join(key_columns), ", ".join("?" for _ in key_columns)
    selection = f"SELECT {key_list}, {', '.join(columns)} FROM {name}"  # noqa: S608 - our own names
    settings = ", ".join(f"{column} = ?" for column in changed_columns)
    update = f"UPDATE {name} SET {settings} WHERE ({key_list}) = ({marks})"  # noqa: S608
    total = connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]  # noqa: S608
    batch = f"{selection} WHERE ({key_list}) > ({marks}) ORDER BY {key_list} LIMIT {_BATCH}"
    last_key: tuple[Any, ...] = tuple(
        "" if table.by_key and column != "seq" else -1 for column in key_columns
    )
    row_count, key_width = 0, len(key_columns)
    while True:
        rows = connection.execute(batch, last_key).fetchall()
        if not rows:
            return row_count
        clear = {
            row[:key_width]: source.open_row(name, _row(columns, row[key_width:])) for row in rows
        }
        for own_key, row in clear.items():
            sealed_row = target.seal_row(name, row)
            connection.execute(
                update, (*(escape_cell(sealed_row[c]) for c in changed_columns), *own_key)
            )
        stored_rows = connection.execute(batch, last_key).fetchall()
        opened_rows = {
            row[:key_width]: target.open_row(name, _row(columns, row[key_width:]))
            for row in stored_rows
        }
        if opened_rows != clear:
            raise StoreError("convert", name, "a row was not read back as it was written")
        last_key, row_count = rows[-1][:key_width], row_count + len(rows)
        tell(name, row_count, total)


def _row(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(columns, map(unescape_cell, row), strict=True))
