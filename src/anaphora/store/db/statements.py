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
        connection.execute(_inserting(table, dialect if once else ""), one_or_many(rows))
        return
    names = tuple(rows[0])
    cells = [tuple(map(escape_cell, map(row.__getitem__, names))) for row in rows]
    driver(connection).executemany(_plain_insert(table, names, once=once), cells)


@cache
def _plain_insert(table: str, names: tuple[str, ...], *, once: bool) -> str:
    described = metadata.tables[table]
    columns, marks = (
        ", ".join(described.c[name].name for name in names),
        ", ".join("?" * len(names)),
    )
    end = " ON CONFLICT DO NOTHING" if once else ""
    return f"INSERT INTO {described.name} ({columns}) VALUES ({marks}){end}"  # noqa: S608 - names of ours


@cache
def _inserting(table: str, once: str = "") -> Any:
    """Adds rows. With `once`, the name of a dialect, existing keys are left out."""
    described = metadata.tables[table]
    return insert_into(once, described).on_conflict_do_nothing() if once else described.insert()


@cache
def replacing(table: str, dialect: str) -> Any:
    """Adds rows, or puts them in the place of those that have their primary keys."""
    described = metadata.tables[table]
    keys = [column.name for column in described.primary_key.columns]
    insert = insert_into(dialect, described)
    updates = {c.name: insert.excluded[c.name] for c in described.columns if c.name not in keys}
    if not updates:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=updates)


@cache
def changing(table: str, names: tuple[str, ...]) -> Any:
    """Sets these columns to `new_…`, in the row with the primary key `of_…`."""
    key = tuple((column.name, False) for column in metadata.tables[table].primary_key.columns)
    return setting(table, names, key)


def read(
    connection: Connection, table: str, columns: tuple[str, ...], where: Where, given: Row
) -> list[tuple[Any, ...]]:
    """These columns of the rows that have the values, in the write under way."""
    if connection.dialect.name != "sqlite":
        return list(map(tuple, connection.execute(selecting(table, columns, where), given)))
    values: list[Any] = []
    counts = []
    for name, several in where:
        cell = given[f"of_{name}"]
        counts.append(len(cell) if several else -1)
        values += cell if several else (cell,)
    statement = _plain_select(table, columns, where, tuple(counts))
    cursor = driver(connection).execute(statement, tuple(map(escape_cell, values)))
    return unescape_rows(cursor.fetchall())


@lru_cache(maxsize=1024)
def _plain_select(
    table: str, columns: tuple[str, ...], where: Where, counts: tuple[int, ...]
) -> str:
    described = metadata.tables[table]
    tests = [
        f"{described.c[name].name} IN ({', '.join('?' * count)})"
        if count >= 0
        else f"{described.c[name].name} = ?"
        for (name, _), count in zip(where, counts, strict=True)
    ]
    names = ", ".join(described.c[name].name for name in columns)
    return f"SELECT {names} FROM {described.name} WHERE {' AND '.join(tests)}"  # noqa: S608 - ours


@cache
def selecting(table: str, columns: tuple[str, ...], where: Where) -> Any:
    """Reads these columns of the rows that have the values."""
    described = metadata.tables[table]
    return select(*(described.c[name] for name in columns)).where(*_comparisons(described, where))


@cache
def deleting(table: str, where: Where) -> Any:
    """Deletes the rows that have the values."""
    described = metadata.tables[table]
    return delete(described).where(*_comparisons(described, where))


@cache
def setting(table: str, names: tuple[str, ...], where: Where) -> Any:
    """Sets these columns to `new_…`, in the rows that have the values."""
    described = metadata.tables[table]
    new: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
    return update(described).where(*_comparisons(described, where)).values(new)


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
def _locking(dialect: str) -> Any:
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
        statement = _locking(connection.dialect.name)
        seq, audit = connection.execute(statement, {"namespace": namespace}).one()
    return int(seq), audit


def advance(connection: Connection, namespace: str, seq: int) -> None:
    """Set the head of a namespace that `lock` has locked."""
    if connection.dialect.name == "sqlite":
        parameters = (seq, escape_cell(namespace))
        driver(connection).execute("UPDATE head SET seq = ? WHERE namespace = ?", parameters)
    else:
        connection.execute(_ADVANCE, {"here": namespace, "upto": seq})
