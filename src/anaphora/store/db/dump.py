"""The database of a server as text, and back: one member of a backup for each table.

Values are those that the database has (escaped, and sealed in a sealed home); the first line of a
member names the columns, every other one is a row, a JSON list in which bytes stand as
{"base64": "…"}. A dump restores into SQLite as well as into another server.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from anaphora.errors import DamagedBackup, MissingExtra, NotEmpty
from anaphora.store.db.connecting import make_tables, sqlite_engine
from anaphora.store.db.engine import Database
from anaphora.store.db.faults import explain
from anaphora.store.db.revision import REVISION, REVISION_TABLE
from anaphora.store.db.schema import metadata

OpenMember = Callable[[str], AbstractContextManager[Callable[[bytes], None]]]
"""Opens a member of a backup by its name: what comes is called with its bytes."""
ReadMember = Callable[[str, Callable[[bytes], object]], None]
"""Gives a member of a backup, by its name, to what takes its bytes."""

FOLDER = "tables/"
_SUFFIX = ".jsonl"
_MOST_LINE = 1 << 30
_AT_ONCE = 1_000


def dump(truth: Database, member: OpenMember) -> dict[str, Any]:
    """Write every table, of all namespaces, as of one moment; what a manifest says of it."""
    rows: dict[str, int] = {}
    with truth.read() as connection:
        for table in metadata.sorted_tables:
            if table.name == REVISION_TABLE:
                continue
            names = [column.name for column in table.columns]
            with member(f"{FOLDER}{table.name}{_SUFFIX}") as write:
                write(_line(names))
                rows[table.name] = 0
                # Plain SQL: the types of the schema would unescape what is to stay as it is.
                rows_found = connection.execution_options(stream_results=True).execute(
                    text(f"SELECT {_quoted(names)} FROM {table.name}")  # noqa: S608
                )
                for row in rows_found:
                    cells = [
                        {"base64": base64.b64encode(cell).decode("ascii")}
                        if isinstance(cell, (bytes, memoryview))
                        else cell
                        for cell in row
                    ]
                    write(_line(cells))
                    rows[table.name] += 1
    return {"database": "postgresql", "schema": REVISION, "rows": rows}


def load(members: Iterable[str], read: ReadMember, database: Path | str) -> None:
    """Make a database at `database` and fill it from a dump, all or nothing.

    `NotEmpty` where there are tables of ours already; `StoreError` and its kinds.
    """
    engine = _engine(database)
    location = database if isinstance(database, Path) else "the database"
    try:
        begun = engine.connect().execution_options(anaphora_begin="BEGIN IMMEDIATE")
        with begun as connection, connection.begin():
            if inspect(connection).has_table(REVISION_TABLE):
                raise NotEmpty("restore into", location, "it already contains an Anaphora home")
            make_tables(connection)
            # Those first that others refer to.
            order = [table.name for table in metadata.sorted_tables]
            names = [
                name[len(FOLDER) : -len(_SUFFIX)] for name in members if name.startswith(FOLDER)
            ]
            for name in sorted(names, key=lambda name: order.index(name) if name in order else -1):
                _fill(connection, read, name)
    except SQLAlchemyError as error:
        raise explain(error, "restore into", location) from error
    finally:
        engine.dispose()


def _engine(database: Path | str) -> Engine:
    if isinstance(database, Path):
        return sqlite_engine(database)
    try:
        url = "postgresql+psycopg://" + database.split("://", 1)[-1]
        return create_engine(url, poolclass=NullPool)
    except ModuleNotFoundError as error:
        raise MissingExtra("postgresql", "psycopg") from error


def _fill(connection: Connection, read: ReadMember, name: str) -> None:
    columns: list[str] = []
    waiting: list[dict[str, Any]] = []

    def insert() -> None:
        if waiting:
            marks = ", ".join(f":c{number}" for number in range(len(columns)))
            statement = f"INSERT INTO {name} ({_quoted(columns)}) VALUES ({marks})"  # noqa: S608
            connection.execute(text(statement), waiting)
            waiting.clear()

    def take(line: bytes) -> None:
        try:
            cells: list[Any] = [
                base64.b64decode(cell["base64"]) if isinstance(cell, dict) else cell
                for cell in json.loads(line)
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise DamagedBackup("read", name, "a row is invalid") from error
        if not columns:
            columns.extend(cells)
            return
        waiting.append({f"c{number}": cell for number, cell in enumerate(cells)})
        if len(waiting) >= _AT_ONCE:
            insert()

    if not name.isidentifier():
        raise DamagedBackup("read", name, "there is no such table")
    read(f"{FOLDER}{name}{_SUFFIX}", lines_to(take))
    insert()


def lines_to(take: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """A writer of bytes that calls `take` with every whole line.

    `DamagedBackup` for a line that is longer than any row is: it would be held whole.
    """
    partial_line = bytearray()

    def write(data: bytes) -> None:
        *lines, line_start = data.split(b"\n")
        for line in lines:
            take(bytes(partial_line + line))
            partial_line.clear()
        partial_line.extend(line_start)
        if len(partial_line) > _MOST_LINE:
            raise DamagedBackup("read", FOLDER, f"a row of more than {_MOST_LINE:,} bytes")

    return write


def _quoted(names: Iterable[str]) -> str:
    # Names come from the schema or from a manifest; a quote would end the name.
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def _line(cells: list[Any]) -> bytes:
    return json.dumps(cells, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
