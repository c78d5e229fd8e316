"""The head counter of a namespace: the last sequence number that a committed write took.

In: a connection in a write transaction. Out: the number, with its row locked until the end of
that transaction, so that no other write of the namespace takes numbers meanwhile.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

from anaphora.store.sql.schema import head

__all__ = ["advance", "insert_into", "lock"]


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
_ADVANCE = update(head).where(head.c.namespace == bindparam("here")).values(seq=bindparam("upto"))


def lock(connection: Connection, namespace: str) -> int:
    """Lock the namespace's head, made with 0 when it is new, and return its number."""
    statement = _LOCK[connection.dialect.name]
    return int(connection.execute(statement, {"namespace": namespace}).scalar_one())


def advance(connection: Connection, namespace: str, seq: int) -> None:
    """Set the head of a namespace that `lock` has locked."""
    connection.execute(_ADVANCE, {"here": namespace, "upto": seq})


def insert_into(connection: Connection, table: Table) -> Any:
    """An INSERT that knows ON CONFLICT, in the words of the connection's database."""
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(table)
