"""Rows of a table and the frozen values that they stand for: one from the other.

A field and the column that holds it are told by their names; `db.tables` says how each value lies
in its column. Nothing here reads a database, and nothing imports SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar, cast

from anaphora.errors import Unreadable
from anaphora.store.codecs import DAMAGE, as_json, from_micros, moment, parsed, to_micros
from anaphora.store.db.table import Column, Table

ValueT = TypeVar("ValueT")
Row = dict[str, Any]


class RowMapping(Generic[ValueT]):
    """Between rows of `table` and values of the dataclass `made`.

    `named` gives the column of a field that has another name. `packed` names, for a column of
    JSON, the fields that lie in it together; those without a value are left out. `read` gives the
    column and the function of a field that is only read, `written` the function of the value that
    gives a column that is only written. Other columns without a field are given to `row`.
    """

    def __init__(
        self,
        table: Table,
        made: type[ValueT],
        *,
        named: Mapping[str, str] | None = None,
        packed: Mapping[str, tuple[str, ...]] | None = None,
        read: Mapping[str, tuple[str, Callable[[Any], Any]]] | None = None,
        written: Mapping[str, Callable[[ValueT], Any]] | None = None,
    ) -> None:
        self.table = table
        self.columns = table.names
        self._made = made
        self._own_key = len(table.own_key)
        self._packed, self._written = dict(packed or {}), dict(written or {})
        packed_fields = {name for names in self._packed.values() for name in names}
        own_fields: tuple[Field[Any], ...] = fields(cast("Any", made))
        self._empty = {
            own_field.name: _default(own_field)
            for own_field in own_fields
            if own_field.name in packed_fields
        }
        named, read = named or {}, read or {}
        columns = {
            own_field.name: named.get(own_field.name, own_field.name) for own_field in own_fields
        }
        self.column_of = {
            name: table[column]
            for name, column in columns.items()
            if name not in {*packed_fields, *read} and column in self.columns
        }
        decoders = [
            (name, self.columns.index(column.name), _decoder(column))
            for name, column in self.column_of.items()
        ]
        decoders += [(name, self.columns.index(at), how) for name, (at, how) in read.items()]
        plain = [(name, at) for name, at, how in decoders if how is None]
        self._plain_names = [name for name, _ in plain]
        self._decoded = [(name, at, how) for name, at, how in decoders if how is not None]
        self._places = [(self.columns.index(at), names) for at, names in self._packed.items()]
        # Two at least: of one place or name they give no tuple.
        self._plain_cells = itemgetter(*(at for _, at in plain), 0, 0)
        self._cells = attrgetter(*self.column_of, *list(self.column_of)[:1])
        self._own_columns = tuple(column.name for column in self.column_of.values())
        self._encoded = [
            (column.name, how)
            for column in self.column_of.values()
            if (how := _ENCODERS.get(column.codec)) is not None
        ]

    def value(self, row: Sequence[Any], **more: Any) -> ValueT:
        """The value that a row of all columns stands for, with `more` fields. `Unreadable`."""
        try:
            values = dict(zip(self._plain_names, self._plain_cells(row), strict=False))
            for name, at, how in self._decoded:
                values[name] = how(row[at])
            for at, names in self._places:
                packed_values = parsed(row[at], dict)
                for name in names:
                    empty = self._empty[name]
                    field_value = packed_values.get(name, empty)
                    values[name] = tuple(field_value) if isinstance(empty, tuple) else field_value
            return self._made(**values, **more)
        except DAMAGE as error:
            key = " ".join(map(str, row[: self._own_key]))
            reason = f"it is invalid ({error})"
            raise Unreadable(self.table.name, key, reason) from error

    def cell(self, name: str) -> tuple[str, Callable[[Any], Any]]:
        """The column of a field, and how its value is read from there."""
        column = self.column_of[name]
        return column.name, _decoder(column) or (lambda stored: stored)

    def row(self, value: ValueT, **more: Any) -> Row:
        """The columns of a value, with `more` columns."""
        row = dict(zip(self._own_columns, self._cells(value), strict=False))
        for name, encoded_field in self._encoded:
            row[name] = encoded_field(row[name])
        for column, names in self._packed.items():
            packed_values = {
                name: field_value
                for name in names
                if (field_value := _plain(getattr(value, name))) is not None
            }
            row[column] = as_json(packed_values) if packed_values else None
        return row | {column: how(value) for column, how in self._written.items()} | more


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _plain(value: Any) -> Any:
    """As JSON has it; None for False and an empty collection, which are not written."""
    return value or None if isinstance(value, tuple | Mapping | bool) else value


def _decoder(column: Column) -> Callable[[Any], Any] | None:
    """How a value is read from its cell; None where it is the cell."""
    if column.codec == "moment":
        return moment if column.needed else from_micros
    if column.codec == "text" and column.at_rest == "sealed" and column.needed:
        return _checked_text
    return _DECODERS.get(column.codec)


def _checked_text(stored: Any) -> str:
    if not isinstance(stored, str):
        raise ValueError("its text is not a string")
    return stored


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "flag": bool,
    "texts": lambda stored: tuple(parsed(stored, list)),
    "mapping": lambda stored: parsed(stored, dict),
    "json": lambda stored: parsed(stored, dict) if stored else None,
}
_ENCODERS: Mapping[str, Callable[[Any], Any]] = {
    "moment": to_micros,
    "flag": int,
    "texts": lambda value: as_json(value) if value else None,
    "mapping": lambda value: as_json(value) if value else None,
    "json": lambda value: None if value is None else as_json(value),
}
