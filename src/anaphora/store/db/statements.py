"""The statements that writes are made of: plain SQL that both databases know, `?` for each cell.

A write's connection is the driver's own on SQLite, since SQLAlchemy takes several times as long to
run a statement as SQLite does, and SQLAlchemy's on a server. What either raises is explained where
the write ends. `lock` and `advance` are for the head counter of a namespace: the last number that a
committed write took. Its row is locked until the end of the transaction, so that no other write of
the namespace takes numbers meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from anaphora.store.db.driver import dbapi2
from anaphora.store.db.faults import BUSY_SECONDS, IDLE_SECONDS
from anaphora.store.db.revision import REVISION, REVISION_TABLE, check_revision
from anaphora.store.db.tables import TABLES
from anaphora.store.escaping import escape_rows, unescape_rows

_TEXT: Final = "text"
"""The column of tables that hold a statement or a passage."""

_TRACE: Final = 48
"""Bytes of a trace."""

Row = Mapping[str, Any]
Where = tuple[tuple[str, int], ...]
"""Columns to compare, and of each how many values there are, any of which will do."""


def execute(connection: Any, statement: str, cells: Iterable[Any] = ()) -> Any:
    """Run one statement; its cursor."""
    (escaped_cells,) = escape_rows([tuple(cells)])
    if isinstance(connection, dbapi2.Connection):
        return connection.execute(statement, escaped_cells)
    return connection.exec_driver_sql(statement.replace("?", "%s"), escaped_cells)


def execute_many(
    connection: Any, statement: str, names: Sequence[str], rows: Sequence[Row]
) -> None:
    """Run a statement with these cells of each row."""
    if len(rows) == 1:
        # A server's driver opens a pipeline for a list, even of one.
        execute(connection, statement, map(rows[0].__getitem__, names))
        return
    cells = escape_rows(list(map(itemgetter(*names), rows)))
    if isinstance(connection, dbapi2.Connection):
        connection.executemany(statement, cells)
    else:
        connection.exec_driver_sql(statement.replace("?", "%s"), cells)


def insert(connection: Any, table: str, rows: Sequence[Row], *, once: bool = False) -> None:
    """Add rows, which all have the columns of the first; with `once` those that are there stay."""
    names = tuple(rows[0])
    end = " ON CONFLICT DO NOTHING" if once else ""
    execute_many(connection, _insert_text(table, names) + end, names, rows)


def replace(connection: Any, table: str, rows: Sequence[Row]) -> None:
    """Add rows of all columns, or put them in the place of those with their primary keys."""
    names, keys = tuple(rows[0]), TABLES[table].key
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    action = f"UPDATE SET {changes}" if changes else "NOTHING"
    end = f" ON CONFLICT ({', '.join(keys)}) DO {action}"
    execute_many(connection, _insert_text(table, names) + end, names, rows)


def update(connection: Any, table: str, names: Sequence[str], rows: Sequence[Row]) -> None:
    """Change these columns in the rows with the primary keys."""
    keys = TABLES[table].key
    statement = _update_text(table, tuple(names), tuple((name, 1) for name in keys))
    execute_many(connection, statement, (*names, *keys), rows)


def update_where(
    connection: Any, table: str, changed: Row, where: Where, cells: Sequence[Any]
) -> int:
    """Set columns of the rows that have the values; how many."""
    statement = _update_text(table, tuple(changed), where)
    return int(execute(connection, statement, (*changed.values(), *cells)).rowcount)


def delete(connection: Any, table: str, where: Where, cells: Sequence[Any]) -> int:
    """Delete the rows that have the values; how many."""
    statement = f"DELETE FROM {table} WHERE {_test_text(where)}"  # noqa: S608 - names of ours
    return int(execute(connection, statement, cells).rowcount)


def find_traces(connection: Any, table: str, where: Where, cells: Sequence[Any]) -> set[bytes]:
    """The beginnings and ends of the texts of the rows that have the values, as a file has them."""
    if _TEXT not in TABLES[table].names:
        return set()
    statement = f"SELECT {_TEXT} FROM {table} WHERE {_test_text(where)}"  # noqa: S608
    texts = (
        str(text).encode("utf-8", "surrogatepass")
        for (text,) in execute(connection, statement, cells)
    )
    return {trace for text in texts if text for trace in (text[:_TRACE], text[-_TRACE:])}


def read(
    connection: Any, table: str, columns: Sequence[str], where: Where, cells: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """These columns of the rows that have the values, in the write under way."""
    tests = _test_text(where)
    statement = f"SELECT {', '.join(columns)} FROM {table} WHERE {tests}"  # noqa: S608
    return unescape_rows(list(map(tuple, execute(connection, statement, cells).fetchall())))


@lru_cache(maxsize=256)
def _insert_text(table: str, names: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608


@lru_cache(maxsize=256)
def _update_text(table: str, names: tuple[str, ...], where: Where) -> str:
    changes = ", ".join(f"{name} = ?" for name in names)
    return f"UPDATE {table} SET {changes} WHERE {_test_text(where)}"  # noqa: S608


@lru_cache(maxsize=1024)
def _test_text(where: Where) -> str:
    return " AND ".join(
        f"{name} IN ({', '.join('?' * count)})" if count > 1 else f"{name} = ?"
        for name, count in where
    )


# For this transaction alone (`true`): a pooler may give the connection to another program then.
_LIMITS = (
    f"SELECT set_config('lock_timeout', '{BUSY_SECONDS}s', true), "  # noqa: S608 - names of ours
    f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true), "
    f"(SELECT version_num FROM {REVISION_TABLE})"
)
_FOUND = f"SELECT version_num FROM {REVISION_TABLE}"  # noqa: S608
# An upsert that changes nothing locks the row on every database, FOR UPDATE only on some.
_LOCK = (
    "INSERT INTO head (namespace, seq) VALUES (?, 0) "
    "ON CONFLICT (namespace) DO UPDATE SET seq = head.seq RETURNING seq, audit"
)


def lock(connection: Any, namespace: str) -> tuple[int, str | None]:
    """Lock the namespace's head, made with 0 when it is new; its number, and its audit trail's.

    On a server nothing waits for ever, neither here nor for a writer that is gone. SQLite's own
    busy timeout does the like. `SchemaTooNew` where a newer program has changed the schema since
    this one opened it.
    """
    in_file = isinstance(connection, dbapi2.Connection)
    *_, revision = execute(connection, _FOUND if in_file else _LIMITS).fetchone()
    if revision != REVISION:
        check_revision(str(revision), "the database")
    rows = execute(connection, _LOCK, (namespace,)).fetchall()
    ((seq, audit),) = unescape_rows(list(map(tuple, rows)))
    return int(seq), audit


def advance(connection: Any, namespace: str, seq: int) -> None:
    """Set the head of a namespace that `lock` has locked."""
    execute(connection, "UPDATE head SET seq = ? WHERE namespace = ?", (seq, namespace))
