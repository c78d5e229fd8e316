"""Rows of the database, sealed on their way in and opened on their way out, as `db.tables` says.

A sealed value is bound to table, column and primary key, and one value of each row to the rest of
the row: neither a value nor a place opens with what belongs to another. It never imports
SQLAlchemy: the first reads of every command come through here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from anaphora.errors import MissingKey, Tampered
from anaphora.store.crypto.cipher import (
    ANCHOR_PREFIX,
    NOTHING_PREFIX,
    TEXT_PREFIX,
    Finder,
    Keys,
    binding,
    looks_sealed,
)
from anaphora.store.crypto.marker import Guard, HomeForm
from anaphora.store.db.table import Table
from anaphora.store.db.tables import TABLES

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

ValueT = TypeVar("ValueT", str, bytes)
Row = Mapping[str, Any]
# Of the way in which rows are sealed. Not the schema's revision: every change of that would have to
# seal every row again.
_VERSION = "1"
# The same for values that are bound to the rest of their row.
_OF_ROW: Final = "2"


def open_rows(
    sealer: Sealer,
    table: str,
    columns: Sequence[str],
    namespace: str,
    rows: Sequence[tuple[Any, ...]],
    only: Collection[str] | None = None,
) -> Sequence[tuple[Any, ...]]:
    """Rows of these columns, opened. The primary key, but for the namespace, is among them.

    `only` are the columns to open, if not all: the others come as they are stored.
    """
    if not sealer.sealed:
        # Where one row is clear all are: a conversion changes them in one transaction.
        for row in rows[:1]:
            sealer.open_row(table, dict(zip(columns, row, strict=True), namespace=namespace))
        return rows
    opened_rows = [
        sealer.open_row(table, dict(zip(columns, row, strict=True), namespace=namespace), only)
        for row in rows
    ]
    return [tuple(row[column] for column in columns) for row in opened_rows]


class ClearRows(HomeForm):
    """Passes everything through."""

    sealed = False

    def seal_row(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        """The row itself."""
        return row

    def open_row(self, table: str, row: Row, only: Collection[str] | None = None) -> dict[str, Any]:
        """The row itself; `MissingKey` for one of a sealed home."""
        for column in TABLES[table].digests:
            if looks_sealed(row.get(column)):
                self.check()
                reason = "its rows are encrypted, but sealed.json is missing: restore that file"
                raise MissingKey("truth", reason)
        return dict(row)

    def lookup(self, column: str, namespace: str, value: str) -> str:
        """The value itself."""
        return value

    def found(self, column: str, namespace: str, stored: str) -> str:
        """What is stored itself."""
        return stored

    def opener(
        self, table: str, column: str, namespace: str
    ) -> Callable[[Sequence[str | int], ValueT], ValueT]:
        """A function that gives back what is stored."""
        return lambda _key, stored: stored


CLEAR = ClearRows()


class SealedRows(HomeForm):
    """Seals and opens rows with keys derived from one data key."""

    sealed = True

    def __init__(self, keys: Keys, guard: Guard | None = None) -> None:
        super().__init__(guard)
        self._cipher = keys.cipher("records")
        self._finder = Finder(keys.of("lookup", 64))

    def seal_row(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        """The row as it is stored; a column that is None stays None, unless it is `filled`.

        It must have the primary key; other columns may be missing.
        """
        plan, sealed_row = TABLES[table], dict(row)
        for column in plan.lookup:
            if sealed_row.get(column) is not None:
                sealed_row[column] = self.lookup(column, row["namespace"], sealed_row[column])
        key = [sealed_row[column] for column in plan.key]
        for column in plan.sealed:
            if column in sealed_row and column != plan.anchor:
                sealed_row[column] = self._seal(
                    plan, column, sealed_row[column], (table, column, *key)
                )
        if plan.anchor in sealed_row:
            # Last: it is bound to what the others have become.
            column = plan.anchor
            location = (table, column, *key, _rest_of(plan, sealed_row))
            sealed_row[column] = self._seal(plan, column, sealed_row[column], location)
        return sealed_row

    def open_row(self, table: str, row: Row, only: Collection[str] | None = None) -> dict[str, Any]:
        """The row as it was given. It must have the primary key, as stored.

        A row that has its anchor must have all its `sealing` columns. `only` are those to open, if
        not all; whether the row is whole is looked at all the same. `Tampered` when a column was
        changed, emptied, moved or is not sealed.
        """
        plan, opened_row = TABLES[table], dict(row)
        key = tuple(row[column] for column in plan.key)
        for column in plan.sealed:
            opens = only is None or column in only or column == plan.anchor
            if opens and column in row:
                opened_row[column] = self._open(table, plan, column, key, row)
        for column in plan.lookup:
            if row.get(column) is not None and (only is None or column in only):
                opened_row[column] = self.found(column, row["namespace"], row[column])
        return opened_row

    def lookup(self, column: str, namespace: str, value: str) -> str:
        """The keyed form of `value`; the same in every table, another in each namespace."""
        return self._finder.seal(value, binding(_VERSION, column, namespace))

    def found(self, column: str, namespace: str, stored: str) -> str:
        """The value behind a keyed form."""
        bound = binding(_VERSION, column, namespace)
        return self._finder.open(stored, bound, f"{column} of {namespace}")

    def opener(
        self, table: str, column: str, namespace: str
    ) -> Callable[[Sequence[str | int], ValueT], ValueT]:
        """A function that opens one column of many rows: (rest of the key, stored) to value."""
        assert column != TABLES[table].anchor, "an anchor opens with its whole row alone"
        start, name = binding(_VERSION, table, column, namespace), f"{table}.{column}"
        cipher = self._cipher
        # Of many rows only the owner differs; putting a binding together takes as long as opening.
        ends: dict[tuple[str | int, ...], bytes] = {}

        def open_one(key: Sequence[str | int], stored: ValueT) -> ValueT:
            owner = tuple(key[1:])
            end = ends.get(owner)
            if end is None:
                end = ends[owner] = binding(*owner)
            bound = start + binding(key[0]) + end
            if isinstance(stored, str):
                return cipher.open_text(stored, bound, name)
            return cipher.open(stored, bound, name)

        return open_one

    def _seal(self, plan: Table, column: str, value: Any, location: tuple[Any, ...]) -> Any:
        if value is None and column not in plan.filled:
            return None
        anchor = column == plan.anchor
        if value is None:
            bound = binding(_OF_ROW, "nothing", *location)
            return self._cipher.seal_text("", bound, NOTHING_PREFIX)
        bound = binding(_OF_ROW if anchor else _VERSION, *location)
        if isinstance(value, str):
            return self._cipher.seal_text(value, bound, ANCHOR_PREFIX if anchor else TEXT_PREFIX)
        return self._cipher.seal(bytes(value), bound)

    def _open(
        self, table: str, plan: Table, column: str, key: tuple[Any, ...], row: Row
    ) -> str | bytes | None:
        stored_cell, name = row[column], f"{table}.{column} of {list(key[1:])}"
        anchor = column == plan.anchor
        location = (table, column, *key, _rest_of(plan, row)) if anchor else (table, column, *key)
        if isinstance(stored_cell, str):
            if column in plan.filled and stored_cell.startswith(NOTHING_PREFIX):
                bound = binding(_OF_ROW, "nothing", *location)
                self._cipher.open_text(stored_cell, bound, name, NOTHING_PREFIX)
                return None
            bound = binding(_OF_ROW if anchor else _VERSION, *location)
            prefix = ANCHOR_PREFIX if anchor else TEXT_PREFIX
            return self._cipher.open_text(stored_cell, bound, name, prefix)
        if isinstance(stored_cell, bytes | memoryview):
            return self._cipher.open(bytes(stored_cell), binding(_VERSION, *location), name)
        if stored_cell is None and plan.anchor and not anchor and column not in plan.filled:
            # Whether it may be empty is what the anchor says.
            return None
        reason = "it was emptied" if stored_cell is None else "it is not encrypted"
        raise Tampered(name, f"{reason}, but the home is encrypted")


def _rest_of(plan: Table, row: Row) -> str:
    """What an anchor is bound to beside its place: lookups as stored, clear columns, what is empty.

    One ASCII string that no other row state has.
    """
    cells = [row.get(column) for column in plan.lookup]
    cells += [_as_any_database(row.get(column)) for column in plan.bound]
    cells += [
        row.get(column) is None
        for column in plan.sealed
        if column != plan.anchor and column not in plan.filled
    ]
    return ascii(cells)


def _as_any_database(value: Any) -> Any:
    """A cell in the one form of it: databases give 1, True and 1.0 for one another."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(value)
    return int(value) if isinstance(value, int) else value


Sealer = ClearRows | SealedRows
"""What the writers and readers of rows call."""


def refuse_another_form(truth: Database, sealer: Sealer) -> None:
    """`MissingKey` where rows are sealed and this home is clear, `Tampered` for another key.

    Clear and sealed rows, or those of two keys, must never come to lie side by side: who writes
    for the first time looks at one row of every table that shows how it is sealed.
    """
    for table, plan in TABLES.items():
        # A digest never holds a user's text: what looks sealed there can be nothing else.
        if not plan.digests:
            continue
        names = ", ".join(plan.sealing)
        for row in truth.rows(f"SELECT {names} FROM {table} LIMIT 1", {}):  # noqa: S608
            sealer.open_row(table, dict(zip(plan.sealing, row, strict=True)))
