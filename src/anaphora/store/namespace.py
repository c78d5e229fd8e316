"""How the tables of one namespace are read and written, for every store of the database.

Reads are plain SQL that both databases know; on SQLite they import no SQLAlchemy. In a sealed home
rows are opened on their way out and sealed on their way in. Every row that is written takes the
next number of its namespace, so that an index follows the database by numbers, and by the
tombstones of what was deleted. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows, refuse_another_form
from anaphora.store.db import statements
from anaphora.store.db.table import Table
from anaphora.store.db.tables import TOMBSTONE

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Scrubbing, Write
    from anaphora.store.db.statements import Where

Row = dict[str, Any]
Rows = Sequence[tuple[Any, ...]]
ValueT = TypeVar("ValueT")

AT_ONCE: Final = 200
"""Ids named in one statement: plans of a bounded size can be kept."""
_ID_NAMES: Final = tuple(f"id{at}" for at in range(AT_ONCE))
NO_LIMIT: Final = 2**62
STEP: Final = 512
"""Rows taken at once where all are looked at."""
_WRITTEN_AT_ONCE: Final = 256


def portions(values: Iterable[ValueT], at_once: int = _WRITTEN_AT_ONCE) -> Iterator[list[ValueT]]:
    """Some values at a time, each value once."""
    distinct_values = list(dict.fromkeys(values))
    for start in range(0, len(distinct_values), at_once):
        yield distinct_values[start : start + at_once]


def ids_named(
    ids: Iterable[str], at_once: int = AT_ONCE
) -> Iterator[tuple[dict[str, str | int | None], str]]:
    """Parameters for some ids at a time, each id once, and their names for an IN."""
    for batch in portions(ids, min(at_once, AT_ONCE)):
        parameters: dict[str, str | int | None] = dict(zip(_ID_NAMES, batch, strict=False))
        yield parameters, ":" + ", :".join(parameters)


class _NamespaceRows:
    """The rows of one namespace, as a sealer seals and opens them."""

    def __init__(self, namespace: str, sealer: Sealer) -> None:
        self.namespace = namespace
        self.sealer = sealer

    def _lookup(self, column: str, value: str) -> str:
        """What a lookup column holds for a value."""
        return self.sealer.lookup(column, self.namespace, value)

    def _opened(
        self,
        table: Table,
        rows: Rows,
        columns: Sequence[str] = (),
        only: Collection[str] | None = None,
    ) -> Rows:
        """Rows of these columns (all by default), opened, or `only` these columns of them."""
        return open_rows(
            self.sealer, table.name, columns or table.names, self.namespace, rows, only
        )


class NamespaceReader(_NamespaceRows):
    """Reads tables of one namespace. Every read sees every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        super().__init__(namespace, sealer)
        self.truth = truth

    def version(self) -> int:
        """The number of the last committed change in the namespace, of any kind."""
        return self.truth.version(self.namespace)

    @contextmanager
    def _writing(self, *, scrub: Scrubbing = False) -> Iterator[Write]:
        """A write transaction, kept compared or not.

        When it ends, everything is on the disk. `ReadOnly`, `DiskFull` or `StoreError` when the
        database refuses; `SealChanged`, `MissingKey` or `Tampered` where the rows that are there
        are sealed in another way.
        """
        self._refuse_another_form()
        with self._write(scrub=scrub) as write:
            yield write

    @contextmanager
    def _write(self, *, scrub: Scrubbing = False) -> Iterator[Write]:
        """The same, where what is written shows no other form: rows are not looked at first."""
        with self.truth.write(self.namespace, scrub=scrub) as write:
            # Within the transaction: from here on no conversion can begin to change rows.
            self.sealer.check()
            yield write

    def _refuse_another_form(self) -> None:
        """Clear and sealed rows, or those of two keys, must never come to lie side by side."""
        if self.truth.known_form is not self.sealer:
            refuse_another_form(self.truth, self.sealer)
            self.truth.known_form = self.sealer

    def _rows(self, statement: str, **values: str | int | None) -> list[tuple[Any, ...]]:
        """The rows of a SELECT, as they are stored."""
        self.sealer.check()
        return self.truth.rows(statement, {"namespace": self.namespace, **values})

    def _found(self, table: Table, statement: str, **values: str | int | None) -> Rows:
        """The rows of a SELECT of all columns, opened."""
        return self._opened(table, self._rows(statement, **values))

    def _data(self, table: Table, embedder: str, rows: Rows) -> tuple[bytes, ...]:
        """The vectors of rows (owner, part, data, …), opened."""
        if not self.sealer.sealed:
            return tuple(row[2] for row in rows)
        opener: Callable[[Sequence[str | int], bytes], bytes]
        opener = self.sealer.opener(table.name, "data", self.namespace)
        return tuple(
            opener((owner, embedder, part), sealed_vector)
            for owner, part, sealed_vector, *_ in rows
        )


class NamespaceTransaction(_NamespaceRows):
    """What one write transaction does to tables of its namespace."""

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        super().__init__(write.namespace, sealer)
        self.write = write

    def _insert(self, table: Table, rows: Sequence[Row], *, once: bool = False) -> None:
        """Add rows, each with the next number; `once` keeps existing rows of the same key."""
        if rows:
            self._execute_insert(table, self._numbered(table, rows), once=once)

    def _replace(self, table: Table, rows: Sequence[Row]) -> None:
        """Add rows of all columns, or put them in the place of those with their primary keys."""
        if rows:
            with self._tracing(table, rows):
                statements.replace(self.write.connection, table.name, self._numbered(table, rows))

    def _update(self, table: Table, rows: Sequence[Row]) -> None:
        """Change rows that are there, found by their primary keys; each gets the next number."""
        if rows:
            stored_rows = self._numbered(table, rows)
            with self._tracing(table, rows):
                self._execute_update(table, stored_rows, stored_rows[0])

    @contextmanager
    def _tracing(self, table: Table, rows: Sequence[Row]) -> Iterator[None]:
        """Note what the file had of rows that are changed inside, if it is to be scrubbed."""

        def find_all() -> set[bytes]:
            keys = ({name: row[name] for name in table.own_key} for row in rows)
            return {
                trace
                for key in keys
                for where, cells in self._compared(key)
                for trace in statements.find_traces(self.write.connection, table.name, where, cells)
            }

        before = set() if self.write.traces is None else find_all()
        yield
        if before and self.write.traces is not None:
            self.write.traces |= before - find_all()

    def _delete(self, table: Table, **values: Any) -> int:
        """Delete the rows with these values in their columns (a list: any of it); how many."""
        connection, deleted_count = self.write.connection, 0
        for where, cells in self._compared(values):
            if self.write.traces is not None:
                self.write.traces |= statements.find_traces(connection, table.name, where, cells)
            deleted_count += statements.delete(connection, table.name, where, cells)
        return deleted_count

    def _set(self, table: Table, changed: Mapping[str, Any], **values: Any) -> int:
        """Set clear columns of the rows with these values, without a new number."""
        connection = self.write.connection
        return sum(
            statements.update_where(connection, table.name, changed, where, cells)
            for where, cells in self._compared(values)
        )

    def _renumber(self, table: Table, **values: Any) -> int:
        """Give the rows with these values in their columns the next numbers; how many."""
        keys = self._rows(table, table.own_key, **values)
        numbers, names = self.write.take(len(keys)), ("namespace", *table.own_key, "seq")
        rows = [
            dict(zip(names, (self.namespace, *key, seq), strict=True))
            for key, seq in zip(keys, numbers, strict=True)
        ]
        if rows:
            self._execute_update(table, rows, ("seq",))
        return len(rows)

    def _bury(self, kind: str, owner_ids: Iterable[str]) -> None:
        """Leave the tombstones of what was deleted."""
        self._insert(TOMBSTONE, [{"kind": kind, "owner_id": owner_id} for owner_id in owner_ids])

    def _rows(
        self, table: Table, columns: Sequence[str] = (), **values: Any
    ) -> list[tuple[Any, ...]]:
        """The rows with these values in their columns (a list: any of it), as they are stored."""
        names, connection = tuple(columns) or table.names, self.write.connection
        return [
            row
            for where, cells in self._compared(values)
            for row in statements.read(connection, table.name, names, where, cells)
        ]

    def _found(self, table: Table, **values: Any) -> Rows:
        """The same rows, of all columns, opened."""
        return self._opened(table, self._rows(table, **values))

    def find_rows(self, table: Table, **values: Any) -> list[Row]:
        """The same, each as a mapping from column to value."""
        return [dict(zip(table.names, row, strict=True)) for row in self._found(table, **values)]

    def _compared(self, values: Mapping[str, Any]) -> Iterator[tuple[Where, list[Any]]]:
        """Columns and what they are compared with, some items of a list at a time."""
        cells = {
            name: cell if isinstance(cell, list) else [cell]
            for name, cell in {"namespace": self.namespace, **values}.items()
        }
        if not all(cells.values()):
            return
        # The longest list is cut into batches; another one is a short one.
        longest = max(cells, key=lambda name: len(cells[name]))
        for batch in portions(cells[longest]):
            compared_cells = {**cells, longest: batch}
            where = tuple((name, len(listed)) for name, listed in compared_cells.items())
            yield where, [cell for listed in compared_cells.values() for cell in listed]

    def _numbered(self, table: Table, rows: Sequence[Row]) -> list[Row]:
        """Rows as they are stored, with their namespace and the next numbers."""
        if "seq" not in table.names:
            return [self._stored(table, row) for row in rows]
        numbers = self.write.take(len(rows))
        pairs = zip(rows, numbers, strict=True)
        return [self._stored(table, row, seq=seq) for row, seq in pairs]

    def _stored(self, table: Table, row: Mapping[str, Any], **more: int) -> Row:
        return self.sealer.seal_row(table.name, {**row, **more, "namespace": self.namespace})

    def _execute_insert(self, table: Table, stored: Sequence[Row], *, once: bool = False) -> None:
        statements.insert(self.write.connection, table.name, stored, once=once)

    def _execute_update(self, table: Table, stored: Sequence[Row], names: Iterable[str]) -> None:
        names = tuple(name for name in names if name not in table.key)
        statements.update(self.write.connection, table.name, names, stored)
