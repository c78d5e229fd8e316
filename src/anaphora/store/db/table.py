"""A table of the database: its columns, their content, and what a sealed home does with each.

Plain data, without SQLAlchemy: the first reads of every command come through here.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

AtRest = Literal["clear", "sealed", "lookup"]
Codec = Literal[
    "text", "integer", "big", "float", "flag", "moment", "bytes", "texts", "json", "mapping"
]


class Column(NamedTuple):
    """One column. `codec` says what it holds, and how a value of ours lies in it.

    "big" is an integer of 64 bits, "flag" one of 0 and 1, "moment" microseconds since 1970 UTC.
    Three hold JSON: "texts" a list of texts, "mapping" an object, both NULL when empty, and "json"
    an object that may be None.

    `at_rest` is what a sealed home does with it: "clear" leaves it readable (it must be counted,
    ordered or joined), "sealed" encrypts it, and "lookup", a digest or an id to find rows by,
    becomes a keyed form, equal for equals and of fixed length (PostgreSQL refuses index entries
    above 2.7 kB). `Table` tells what the other marks do there.
    """

    name: str
    codec: Codec = "text"
    at_rest: AtRest = "clear"
    needed: bool = True
    digest: bool = False
    filled: bool = False
    loose: bool = False


class Reference(NamedTuple):
    """Rows that go when what they belong to goes: `column` names a row of `table` by its `key`."""

    name: str
    column: str
    table: str
    key: str


class Index:
    """An index over the namespace and these columns.

    `filled` names a column: rows where it is empty are left out. What few rows have costs nothing
    for the others then.
    """

    def __init__(self, name: str, *columns: str, unique: bool = False, filled: str = "") -> None:
        self.name = name
        self.filled = filled
        self.columns = ("namespace", *columns)
        self.unique = unique


class Table:
    """One table. `key` is its primary key; `columns` come in the order of the database.

    What a sealed home does: every value of a `sealed` column is bound to its table, column and
    key. The `anchor`, one of them, is bound to the rest of its row as well: to its lookups, to the
    clear columns in `bound` (all but the row's number and `loose` ones), and to which sealed
    columns are empty; so who reads the anchor must read all `sealing` columns. A table without an
    anchor needs none: none of its sealed columns may be empty, and its lookups are in its key.
    `filled` are columns that have a sealed form for "nothing", too. `digests` never hold a user's
    text in a clear home: a sealed form in one of them can only mean that the home was sealed.

    What an anchor is bound to is written in the order of the columns: if a column is added to a
    table with an anchor, or moved, its sealed rows no longer open.
    """

    def __init__(
        self,
        name: str,
        key: tuple[str, ...],
        columns: tuple[Column, ...],
        anchor: str,
        references: tuple[Reference, ...],
        indexes: tuple[Index, ...],
        *,
        by_key: bool = False,
    ) -> None:
        self.name, self.key, self.columns = name, key, columns
        self.by_key = by_key
        """Whether SQLite keeps its rows in its primary key, and so each key once: short rows."""
        self.references, self.indexes = references, indexes
        self.names = tuple(c.name for c in columns[1:])
        """Its columns but the namespace, in order."""
        self.own_key = key[1:]
        """Its primary key but the namespace."""
        self.moments = tuple(c.name for c in columns if c.codec == "moment")
        self.anchor = anchor
        self.sealed = tuple(c.name for c in columns if c.at_rest == "sealed")
        self.lookup = tuple(c.name for c in columns if c.at_rest == "lookup")
        self.digests = tuple(c.name for c in columns if c.digest)
        self.filled = tuple(c.name for c in columns if c.filled)
        anchored_columns = [c for c in columns if anchor and c.at_rest == "clear" and not c.loose]
        self.bound = tuple(c.name for c in anchored_columns if c.name not in (*key, "seq"))
        self.sealing = tuple(dict.fromkeys((*key, *self.sealed, *self.lookup, *self.bound)))
        """Every column that sealing has to do with, each once."""

    def listed(self, of: str = "", columns: tuple[str, ...] = ()) -> str:
        """These columns, or all, for a SELECT; `of` is the table's name there."""
        start = f"{of}." if of else ""
        return start + f", {start}".join(columns or self.names)

    def select(self, columns: tuple[str, ...] = ()) -> str:
        """The beginning of a SELECT of these columns, or of all, in one namespace."""
        names = self.listed(columns=columns)
        return f"SELECT {names} FROM {self.name} WHERE namespace = :namespace "  # noqa: S608 - ours

    def __getitem__(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)


def namespaced(
    name: str,
    key: tuple[str, ...],
    *columns: Column,
    anchor: str = "",
    references: tuple[Reference, ...] = (),
    indexes: tuple[Index, ...] = (),
    by_key: bool = False,
) -> Table:
    """A table whose rows each belong to a namespace: its first column, and first in its key."""
    columns = (clear("namespace"), *columns)
    return Table(name, ("namespace", *key), columns, anchor, references, indexes, by_key=by_key)


clear = partial(Column, at_rest="clear", needed=True)
"""A column that a sealed home leaves readable; a `loose` one is bound to no anchor."""
moment = partial(Column, codec="moment", at_rest="clear", needed=True)
"""A time, readable in a sealed home."""
sealed = partial(Column, at_rest="sealed", needed=False)
"""A column that a sealed home encrypts."""
lookup = partial(Column, at_rest="lookup", needed=False)
"""A column to find rows by."""
