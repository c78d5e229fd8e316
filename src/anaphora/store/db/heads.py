"""The head counter of a namespace: the last sequence number that a committed write took.

In: a connection in a write transaction. Out: the number, with its row locked until the end of
that transaction, so that no other write of the namespace takes numbers meanwhile.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sqlalchemy import Connection, Table, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

from anaphora.errors import SchemaTooNew, StoreError
from anaphora.store.db.faults import BUSY_SECONDS, IDLE_SECONDS
from anaphora.store.db.revision import REVISION, REVISION_TABLE, is_older
from anaphora.store.db.schema import head


def _locking(make: Any) -> Any:
    # An upsert that changes nothing locks the row on every database, FOR UPDATE only on some.
    return (
        make(head)
        .values(namespace=bindparam("namespace"), seq=0)
        .on_conflict_do_update(index_elements=["namespace"], set_={"seq": head.c.seq})
        .returning(head.c.seq)
    )


# Made once: every write runs both, and building them takes as long as running them.
_LOCK = {"postgresql": _locking(postgresql.insert), "sqlite": _locking(sqlite.insert)}
# For this transaction alone (`true`): a pooler may give the connection to another program then.
_LIMITS = (
    f"SELECT set_config('lock_timeout', '{BUSY_SECONDS}s', true), "  # noqa: S608 - names of ours
    f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS}s', true), "
    f"(SELECT version_num FROM {REVISION_TABLE})"
)
_FOUND = f"SELECT version_num FROM {REVISION_TABLE}"  # noqa: S608
_ADVANCE = update(head).where(head.c.namespace == bindparam("here")).values(seq=bindparam("upto"))


def lock(connection: Connection, namespace: str) -> int:
    """Lock the namespace's head, made with 0 when it is new, and return its number.

    On a server nothing waits for ever, neither here nor for a writer that is gone. SQLite's own
    busy timeout does the like. `SchemaTooNew` where a newer program has migrated the database
    since this one opened it.
    """
    if connection.dialect.name == "postgresql":
        *_, found = connection.exec_driver_sql(_LIMITS).one()
    else:
        found = connection.exec_driver_sql(_FOUND).scalar_one()
    if found != REVISION:
        _refuse(str(found))
    statement = _LOCK[connection.dialect.name]
    return int(connection.execute(statement, {"namespace": namespace}).scalar_one())


def _refuse(found: str) -> NoReturn:
    if is_older(found):
        reason = f"its schema has become revision {found} meanwhile: open it again"
        raise StoreError("write", "the database", reason)
    raise SchemaTooNew("the database", found)


def advance(connection: Connection, namespace: str, seq: int) -> None:
    """Set the head of a namespace that `lock` has locked."""
    connection.execute(_ADVANCE, {"here": namespace, "upto": seq})


def insert_into(connection: Connection, table: Table) -> Any:
    """An INSERT that knows ON CONFLICT, in the words of the connection's database."""
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(table)
