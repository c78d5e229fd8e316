"""Rows of tables that features give a meaning: found here, and sealed and opened on their way.

It never reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from anaphora.store.crypto.columns import Sealer
from anaphora.store.db.tables import TABLES
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction, Row

if TYPE_CHECKING:
    from anaphora.store.db.engine import Write

Where = Mapping[str, str | int]


class TableRows(NamespaceReader):
    """The rows of one namespace. Every read sees every write acknowledged by any process."""

    def find(
        self,
        table: str,
        where: Where | None = None,
        *,
        newest: bool = False,
        limit: int | None = None,
        only: Sequence[str] = (),
    ) -> list[Row]:
        """The rows with these values in their columns, the oldest change first, or the newest.

        Rows of a table without numbers of changes come in no order.

        `only` reads these columns alone, the primary key among them.
        """
        self.sealer.check()
        # Some columns alone do not show how they are sealed.
        self._refuse_another_form()
        table_spec, columns = TABLES[table], tuple(only) or TABLES[table].names
        stored_cells = _stored(self.sealer, self.namespace, table, where or {})
        tests = "".join(f"AND {name} = :w_{name} " for name in stored_cells)
        # In the order of a key SQLite would rather go through all of them than use an index.
        order = "ORDER BY seq" if "seq" in table_spec.names else ""
        order += " DESC" if order and newest else ""
        limit_clause = "" if limit is None else f" LIMIT {limit:d}"
        parameters = {f"w_{name}": cell for name, cell in stored_cells.items()}
        rows = self._rows(table_spec.select(columns) + tests + order + limit_clause, **parameters)
        opened_rows = self._opened(table_spec, rows, columns)
        return [dict(zip(columns, row, strict=True)) for row in opened_rows]

    @contextmanager
    def change(self) -> Iterator[TableTransaction]:
        """One write transaction, kept whole or not. `ReadOnly`, `DiskFull` or `StoreError`."""
        with self._writing() as write:
            yield self.within(write)

    def within(self, write: Write) -> TableTransaction:
        """The same, in a write of this namespace that is under way."""
        return TableTransaction(write, self.sealer)


class TableTransaction(NamespaceTransaction):
    """One change to these rows, inside a write transaction."""

    def find(
        self,
        table: str,
        where: Where | None = None,
        *,
        newest: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        """As `TableRows.find`, as the rows stand in this transaction."""
        stored_cells = _stored(self.sealer, self.namespace, table, where or {})
        rows = self.find_rows(TABLES[table], **stored_cells)
        if "seq" in TABLES[table].names:
            rows.sort(key=lambda row: int(row["seq"]), reverse=newest)
        return rows[:limit]

    def put(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows, each in place of the one with its key; each takes the next number."""
        table_spec = TABLES[table]
        for row in rows:
            self.drop(table, {name: row[name] for name in table_spec.own_key})
            self._insert(table_spec, [row])

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Write many rows of all columns, each in place of the one with its key."""
        self._replace(TABLES[table], rows)

    def drop(self, table: str, where: Where | None = None) -> int:
        """Delete the rows with these values in their columns; how many there were."""
        stored_cells = _stored(self.sealer, self.namespace, table, where or {})
        return self._delete(TABLES[table], **stored_cells)


def _stored(sealer: Sealer, namespace: str, table: str, values: Where) -> dict[str, Any]:
    """Values to compare with: digests and ids as a sealed home keeps them."""
    return {
        name: sealer.lookup(name, namespace, cell)
        if TABLES[table][name].at_rest == "lookup" and isinstance(cell, str)
        else cell
        for name, cell in values.items()
    }
