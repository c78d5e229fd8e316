"""What a sealed home does with each column of each table, as `db.tables` describes them.

`PLANS` has one `Plan` a table. Imports no SQLAlchemy: the first reads of every command come
through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from anaphora.store.db.tables import TABLES, Table


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to the columns of one table. `key` is its primary key, in order.

    `digests` are those of the columns that never hold a user's text in a clear home: a sealed
    form in one of them can only mean that the home was sealed.

    Every sealed value is bound to its table, column and key. The `anchor`, a sealed column, is
    bound to the rest of its row as well: to its lookups, to the clear columns in `bound` (all but
    the row's number and `loose` ones), and to which sealed columns are empty; so who reads the
    anchor must read all `columns`. A table without an anchor needs none: none of its sealed columns
    may be empty, and its lookups are in its key. `filled` are columns that have a sealed form for
    "nothing", too; `late` are columns that were clear when rows had no anchors.

    What an anchor is bound to is written in the order of the columns: where a column is added to a
    table with an anchor, or changes its place, sealed rows of the older form have to be renewed.
    """

    key: tuple[str, ...]
    sealed: tuple[str, ...]
    lookup: tuple[str, ...]
    digests: tuple[str, ...]
    anchor: str
    bound: tuple[str, ...]
    filled: tuple[str, ...]
    late: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that sealing has to do with, each once."""
        return tuple(dict.fromkeys((*self.key, *self.sealed, *self.lookup, *self.bound)))


def _plan_of(table: Table) -> Plan:
    columns = table.columns
    anchored = [c for c in columns if table.anchor and c.at_rest == "clear" and not c.loose]
    return Plan(
        key=table.key,
        sealed=tuple(c.name for c in columns if c.at_rest == "sealed"),
        lookup=tuple(c.name for c in columns if c.at_rest == "lookup"),
        digests=tuple(c.name for c in columns if c.digest),
        anchor=table.anchor,
        bound=tuple(c.name for c in anchored if c.name not in (*table.key, "seq")),
        filled=tuple(c.name for c in columns if c.filled),
        late=tuple(c.name for c in columns if c.late),
    )


PLANS: Final[Mapping[str, Plan]] = {name: _plan_of(table) for name, table in TABLES.items()}
