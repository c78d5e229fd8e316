"""The rows of the database from one form into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anaphora.core.progress import Progress
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
        done = 0
        # `user_version` is a free number in the file, and it commits with the rows.
        if connection.execute("PRAGMA user_version").fetchone()[0] != number:
            for table in TABLES.values():
                if table.sealed or table.lookup:
                    done += _convert_table(connection, table, source, target, tell)
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
    return done


def _convert_table(
    connection: Any, table: Table, source: Sealer, target: Sealer, tell: Progress
) -> int:
    name, columns, changed = table.name, table.sealing, (*table.sealed, *table.lookup)
    # A key may change as its row is converted; that of a table without row numbers never does.
    key_columns: tuple[str, ...] = table.key if table.by_key else ("rowid",)
    placed, marks = ", ".join(key_columns), ", ".join("?" for _ in key_columns)
    chosen = f"SELECT {placed}, {', '.join(columns)} FROM {name}"  # noqa: S608 - our own names
    settings = ", ".join(f"{column} = ?" for column in changed)
    update = f"UPDATE {name} SET {settings} WHERE ({placed}) = ({marks})"  # noqa: S608
    total = connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]  # noqa: S608
    batch = f"{chosen} WHERE ({placed}) > ({marks}) ORDER BY {placed} LIMIT {_BATCH}"
    last: tuple[Any, ...] = tuple(
        "" if table.by_key and column != "seq" else -1 for column in key_columns
    )
    done, cut = 0, len(key_columns)
    while True:
        rows = connection.execute(batch, last).fetchall()
        if not rows:
            return done
        clear = {row[:cut]: source.open_row(name, _row(columns, row[cut:])) for row in rows}
        for own_key, row in clear.items():
            stored = target.seal_row(name, row)
            connection.execute(update, (*(escape_cell(stored[c]) for c in changed), *own_key))
        stored_rows = connection.execute(batch, last).fetchall()
        opened = {row[:cut]: target.open_row(name, _row(columns, row[cut:])) for row in stored_rows}
        if opened != clear:
            raise StoreError("convert", name, "a row was not read back as it was written")
        last, done = rows[-1][:cut], done + len(rows)
        tell(name, done, total)


def _row(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(columns, map(unescape_cell, row), strict=True))
