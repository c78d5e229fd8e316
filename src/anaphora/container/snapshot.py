"""Truth as of one moment: a database to be read with `rows` and `version` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from anaphora.store.escaping import escape, unescape

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from anaphora.store.db.engine import Database


@contextmanager
def snapshot(truth: Database) -> Iterator[Database]:
    """Truth as of now, for several reads that must agree; it writes nothing.

    A file that does not exist yet is not made: it has no rows anyway.
    """
    if truth.path is not None and not truth.path.exists():
        yield truth
        return
    with truth.read() as connection:
        yield cast("Database", _Snapshot(connection))


class _Snapshot:
    """What `Database.rows` and `Database.version` give, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def version(self, namespace: str) -> int:
        found = self.rows(
            "SELECT seq FROM head WHERE namespace = :namespace", {"namespace": namespace}
        )
        return int(found[0][0]) if found else 0

    def rows(
        self, statement: str, parameters: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        from sqlalchemy import text

        given = {
            name: escape(value) if isinstance(value, str) else value
            for name, value in parameters.items()
        }
        found = self._connection.execute(text(statement), given)
        return [
            tuple(unescape(cell) if isinstance(cell, str) else cell for cell in row)
            for row in found
        ]
