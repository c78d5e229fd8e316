"""The statements that writes are made of, for the tables of `schema`. Imports SQLAlchemy.

Building a statement takes as long as running it, so those that every write runs are made once.
`lock` and `advance` are for the head counter of a namespace: the last number that a committed
write took. Its row is locked until the end of the transaction, so that no other write of the
namespace takes numbers meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, select, update
from sqlalchemy.dialects import sqlite

from anaphora.store.db.faults import BUSY_SECONDS, IDLE_SECONDS
from anaphora.store.db.revision import REVISION, REVISION_TABLE, check_revision
from anaphora.store.db.schema import metadata
from anaphora.store.escaping import escape_cell, unescape_rows

Row = Mapping[str, Any]
Where = tuple[tuple[str, bool], ...]
"""Columns to compare with `of_…`, and of each whether that is a list, any item of which will do."""

head = metadata.tables["head"]


def driver(connection: Connection) -> Any:
    """The driver's own connection, SQLite's: SQLAlchemy takes several times as long to run a
    statement that is known word for word. What it raises is explained where the write ends."""
    return connection.connection.driver_connection


def insert(connection: Connection, table: str, rows: Sequence[Row], *, once: bool = False) -> None:
    """Add rows, which all have the columns of the first; with `once` those that are there stay."""
    dialect = connection.dialect.name
    if dialect != "sqlite":
        connection.execute(_insert_statement(table, dialect if once else ""), one_or_many(rows))
        return
    names = tuple(rows[0])
    cells = [tuple(map(escape_cell, map(row.__getitem__, names))) for row in rows]
    driver(connection).executemany(_plain_insert_text(table, names, once=once), cells)


@cache
def _plain_insert_text(table: str, names: tuple[str, ...], *, once: bool) -> str:
    schema_table = metadata.tables[table]
    columns = ", ".join(schema_table.c[name].name for name in names)
    marks = ", ".join("?" * len(names))
    end = " ON CONFLICT DO NOTHING" if once else ""
    # Only names of ours.
    return f"INSERT INTO {schema_table.name} ({columns}) VALUES ({marks}){end}"  # noqa: S608


@cache
def _insert_statement(table: str, once: str = "") -> Any:
    """An INSERT of rows. With `once`, the name of a dialect, existing keys are left out."""
    schema_table = metadata.tables[table]
    if not once:
        return schema_table.insert()
    return insert_into(once, schema_table).on_conflict_do_nothing()


@cache
def upsert_statement(table: str, dialect: str) -> Any:
    """An INSERT of rows that replaces those with the same primary keys."""
    schema_table = metadata.tables[table]
    keys = [column.name for column in schema_table.primary_key.columns]
    insert = insert_into(dialect, schema_table)
    updates = {c.name: insert.excluded[c.name] for c in schema_table.columns if c.name not in keys}
    if not updates:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=updates)


@cache
def update_statement_by_key(table: str, names: tuple[str, ...]) -> Any:
    """An UPDATE of these columns to `new_…`, in the row with the primary key `of_…`."""
    key = tuple((column.name, False) for column in metadata.tables[table].primary_key.columns)
    return update_statement(table, names, key)


def read(
    connection: Connection, table: str, columns: tuple[str, ...], where: Where, given: Row
) -> list[tuple[Any, ...]]:
    """These columns of the rows that have the values, in the write under way."""
    if connection.dialect.name != "sqlite":
        return list(map(tuple, connection.execute(select_statement(table, columns, where), given)))
    values: list[Any] = []
    counts = []
    for name, several in where:
        cell = given[f"of_{name}"]
        counts.append(len(cell) if several else -1)
        values += cell if several else (cell,)
    statement = _plain_select_text(table, columns, where, tuple(counts))
    cursor = driver(connection).execute(statement, tuple(map(escape_cell, values)))
    return unescape_rows(cursor.fetchall())


@lru_cache(maxsize=1024)
def _plain_select_text(
    table: str, columns: tuple[str, ...], where: Where, counts: tuple[int, ...]
) -> str:
    schema_table = metadata.tables[table]
    tests = [
        f"{schema_table.c[name].name} IN ({', '.join('?' * count)})"
        if count >= 0
        else f"{schema_table.c[name].name} = ?"
        for (name, _), count in zip(where, counts, strict=True)
    ]
    names = ", ".join(schema_table.c[name].name for name in columns)
    return f"SELECT {names} FROM {schema_table.name} WHERE {' AND '.join(tests)}"  # noqa: S608


@cache
def select_statement(table: str, columns: tuple[str, ...], where: Where) -> Any:
    """A SELECT of these columns of the rows that have the values."""
    schema_table = metadata.tables[table]
    selection = select(*(schema_table.c[name] for name in columns))
    return selection.where(*_comparisons(schema_table, where))


@cache
def delete_statement(table: str, where: Where) -> Any:
    """A DELETE of the rows that have the values."""
    schema_table = metadata.tables[table]
    return delete(schema_table).where(*_comparisons(schema_table, where))


@cache
def update_statement(table: str, names: tuple[str, ...], where: Where) -> Any:
    """An UPDATE of these columns to `new_…`, in the rows that have the values."""
    schema_table = metadata.tables[table]
    new_cells: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
    return update(schema_table).where(*_comparisons(schema_table, where)).values(new_cells)


def _comparisons(table: Table, where: Where) -> Iterator[ColumnElement[bool]]:
    for name, several in where:
        operand: Any = bindparam(f"of_{name}", expanding=several)
        yield table.c[name].in_(operand) if several else table.c[name] == operand


def insert_into(dialect: str, table: Table) -> Any:
    """An INSERT that knows ON CONFLICT, in the words of a database."""
    if dialect == "postgresql":
        # Takes a fiftieth of a second to load, which a home in a file should not wait for.
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)


def one_or_many(rows: Sequence[Row]) -> Any:
    """The rows as parameters: a server's driver opens a pipeline for a list, even of one."""
    return list(rows) if len(rows) > 1 else rows[0]


@cache
def _lock_statement(dialect: str) -> Any:
    # Made once: every write runs it, and building it takes as long as running it.
    # An upsert that changes nothing locks the row on every database, FOR UPDATE only on some.
    return (
        insert_into(dialect, head)
        .values(namespace=bindparam("namespace"), seq=0)
        .on_conflict_do_update(index_elements=["namespace"], set_={"seq": head.c.seq})
        .returning(head.c.seq, head.c.audit)
    )


# For this transaction alone (`true`): a pooler may give the connection to another program then.
_LIMITS = (
    f"SELECT set_config('lock_timeout', '{BUSY_SECONDS}s', true), "  # noqa: S608 - names of ours
    f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true), "
    f"(SELECT version_num FROM {REVISION_TABLE})"
)
_FOUND = f"SELECT version_num FROM {REVISION_TABLE}"  # noqa: S608
# The same, without what SQLAlchemy takes to run it.
_LOCK = (
    "INSERT INTO head (namespace, seq) VALUES (?, 0) "
    "ON CONFLICT (namespace) DO UPDATE SET seq = head.seq RETURNING seq, audit"
)
_ADVANCE = update(head).where(head.c.namespace == bindparam("here")).values(seq=bindparam("upto"))


def lock(connection: Connection, namespace: str) -> tuple[int, str | None]:
    """Lock the namespace's head, made with 0 when it is new; its number, and its audit trail's.

    On a server nothing waits for ever, neither here nor for a writer that is gone. SQLite's own
    busy timeout does the like. `SchemaTooNew` where a newer program has changed the schema since
    this one opened it.
    """
    if connection.dialect.name == "postgresql":
        *_, revision = connection.exec_driver_sql(_LIMITS).one()
    else:
        (revision,) = driver(connection).execute(_FOUND).fetchone()
    if revision != REVISION:
        check_revision(str(revision), "the database")
    if connection.dialect.name == "sqlite":
        rows = driver(connection).execute(_LOCK, (escape_cell(namespace),)).fetchall()
        ((seq, audit),) = unescape_rows(rows)
    else:
        statement = _lock_statement(connection.dialect.name)
        seq, audit = connection.execute(statement, {"namespace": namespace}).one()
    return int(seq), audit


def advance(connection: Connection, namespace: str, seq: int) -> None:
    """Set the head of a namespace that `lock` has locked."""
    if connection.dialect.name == "sqlite":
        parameters = (seq, escape_cell(namespace))
        driver(connection).execute("UPDATE head SET seq = ? WHERE namespace = ?", parameters)
    else:
        connection.execute(_ADVANCE, {"here": namespace, "upto": seq})
