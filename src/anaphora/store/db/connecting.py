"""How SQLAlchemy reaches a database, and how its tables come to be.

They are made when the database is new; several processes may do this at once. A database of
another revision is refused before anything is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    create_engine,
    event,
    inspect,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from anaphora.errors import AnaphoraError, InvalidInput, MissingExtra, StoreError
from anaphora.store.db import sqlite
from anaphora.store.db.driver import dbapi2
from anaphora.store.db.faults import explain
from anaphora.store.db.revision import REVISION, REVISION_TABLE, check_revision
from anaphora.store.db.schema import metadata, revision

POOL_SIZE: Final = 8
"""Connections to a server that stay open when they are not used."""
# Any fixed number will do: it is what programs of this schema agree to wait on.
_SCHEMA_LOCK = 0x616E6170686F7261  # "anaphora" in ASCII


def make_in_file(path: Path) -> None:
    """Make the tables in the file at `path` that it lacks. Raises `StoreError` and its kinds."""
    _prepare(sqlite_engine(path), str(path)).dispose()


def sqlite_engine(path: Path) -> Engine:
    """An engine on the file at `path`, made if need be, without a look at what is in it."""
    sqlite.prepare_file(path)
    # A pool bound to threads or shared in memory is what SQLAlchemy would take without a path.
    engine = create_engine(
        "sqlite+pysqlite://",
        module=dbapi2,
        creator=lambda: sqlite.connect(path),
        poolclass=NullPool,
    )
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def open_postgresql(url: str, location: str) -> Engine:
    """An engine on the database at `url`. `MissingExtra` when psycopg is not installed.

    Two parameters of the URL are ours, the others are libpq's. `pool_size` is how many connections
    stay open when they are not used (8). `prepare_threshold` is how often a statement is run before
    the server is made to keep it (5); "none" is for poolers that hand a connection to another
    client after each transaction and do not know whose statement it keeps. `InvalidInput` for
    anything else.
    """
    try:
        target = make_url(url)
        query = dict(target.query)
        options: dict[str, Any] = {
            "pool_size": _count("pool_size", query.pop("pool_size", str(POOL_SIZE)))
        }
        threshold = query.pop("prepare_threshold", None)
        if threshold is not None:
            limit = None if threshold == "none" else _count("prepare_threshold", threshold)
            options["connect_args"] = {"prepare_threshold": limit}
        engine = create_engine(
            target.set(query=query), pool_pre_ping=True, max_overflow=-1, **options
        )
    except ModuleNotFoundError as error:
        raise MissingExtra("postgresql", "psycopg") from error
    except SQLAlchemyError as error:
        raise explain(error, "open", location) from error
    return _prepare(engine, location)


def make_tables(connection: Connection) -> None:
    """Make every table of the present schema and note its revision."""
    metadata.create_all(connection)
    connection.execute(revision.insert().values(version_num=REVISION))


def _count(name: str, given: str | tuple[str, ...]) -> int:
    if not isinstance(given, str) or not given.isdecimal():
        raise InvalidInput(f"{name} in the database's URL", given, "expected a whole number")
    return int(given)


def _begin_sqlite(connection: Connection) -> None:
    # The driver is in autocommit: it would begin a write late, when waiting can only fail.
    options = connection.get_execution_options()
    connection.exec_driver_sql(options.get("anaphora_begin", "BEGIN"))


def _prepare(engine: Engine, location: str) -> Engine:
    try:
        with engine.connect() as connection:
            revision_found = _revision(connection)
        if revision_found is None:
            _make_schema(engine, location)
        else:
            check_revision(revision_found, location)
        _add_tables(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise explain(error, "open", location) from error
    except AnaphoraError:
        engine.dispose()
        raise
    return engine


def _make_schema(engine: Engine, location: str) -> None:
    """Make the tables, unless another process has done so meanwhile."""
    with engine.connect() as connection:
        connection.execution_options(anaphora_begin="BEGIN IMMEDIATE")
        on_server = connection.dialect.name == "postgresql"
        if on_server:
            # After waiting for the lock it must see the tables that were made meanwhile.
            connection.execution_options(isolation_level="READ COMMITTED")
        with connection.begin():
            if on_server:
                lock = text("SELECT pg_advisory_xact_lock(:key)")
                connection.execute(lock, {"key": _SCHEMA_LOCK})
            revision_found = _revision(connection)
            if revision_found is not None:
                check_revision(revision_found, location)
                return
            foreign_tables = set(inspect(connection).get_table_names())
            if on_server:
                # A server's database may be shared; a file with foreign tables is the wrong file.
                foreign_tables &= set(metadata.tables)
            if foreign_tables:
                names = ", ".join(sorted(foreign_tables))
                reason = f"it contains tables of another program: {names}"
                raise StoreError("open", location, reason)
            make_tables(connection)


def _add_tables(engine: Engine) -> None:
    """Make the tables of features that were added since the home was made."""
    with engine.connect() as connection:
        missing = metadata.tables.keys() - set(inspect(connection).get_table_names())
    if not missing:
        return
    with engine.connect() as connection:
        connection.execution_options(anaphora_begin="BEGIN IMMEDIATE")
        with connection.begin():
            if connection.dialect.name == "postgresql":
                lock = text("SELECT pg_advisory_xact_lock(:key)")
                connection.execute(lock, {"key": _SCHEMA_LOCK})
            for table in metadata.sorted_tables:
                if table.name in missing:
                    # Another process may have made it meanwhile.
                    table.create(connection, checkfirst=True)


def _revision(connection: Connection) -> str | None:
    """The stored revision; None when there is none."""
    if not inspect(connection).has_table(REVISION_TABLE):
        return None
    return connection.execute(select(revision.c.version_num)).scalar_one_or_none()
