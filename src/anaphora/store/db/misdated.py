"""Rows whose times lie outside the years 1 to 9999: how they are found, and mended.

In: a truth, and how its rows are sealed. Out: which rows, of every namespace; after mending, each
such time is the nearest one that can be kept, and everything else of the row is as it was. Such
rows are read all the same (`from_micros`); a program that looks at the database is not told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anaphora.core.arguments import EARLIEST, LATEST
from anaphora.store.codecs import to_micros
from anaphora.store.crypto.columns import Sealer
from anaphora.store.db.engine import Database, Write
from anaphora.store.db.tables import TABLES, Table

_FIRST: Final = to_micros(EARLIEST)
_LAST: Final = to_micros(LATEST)


@dataclass(frozen=True, slots=True)
class Misdated:
    """A row by its table, namespace and the rest of its primary key, and the columns meant."""

    table: str
    namespace: str
    key: tuple[str | int, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        which = " ".join(map(str, self.key))
        return f"{self.table} {which} ({self.namespace}): {', '.join(self.columns)}"


def misdated(truth: Database) -> tuple[Misdated, ...]:
    """Every such row, table by table. A database that does not exist yet has none."""
    return tuple(found for table in TABLES.values() for found in _of_table(truth, table))


def mend(truth: Database, sealer: Sealer, found: Sequence[Misdated]) -> int:
    """Give these rows the nearest times that can be kept; how many were mended."""
    done = 0
    for namespace in dict.fromkeys(one.namespace for one in found):
        with truth.write(namespace) as write:
            sealer.check()
            here = [one for one in found if one.namespace == namespace]
            done += sum(_mend(write, sealer, one) for one in here)
    return done


def _of_table(truth: Database, table: Table) -> Iterator[Misdated]:
    times = table.moments
    if not times:
        return
    # In SQLite a text is above every number: it is found as well.
    beyond = " OR ".join(f"{name} < :first OR {name} > :last" for name in times)
    statement = f"SELECT {', '.join(table.key + times)} FROM {table.name} WHERE {beyond}"  # noqa: S608
    for row in truth.rows(statement, {"first": _FIRST, "last": _LAST}):
        given = dict(zip(times, row[len(table.key) :], strict=True))
        wrong = tuple(name for name, value in given.items() if not _is_sound(value))
        yield Misdated(table.name, row[0], row[1 : len(table.key)], wrong)


def _is_sound(value: Any) -> bool:
    return value is None or (isinstance(value, int) and _FIRST <= value <= _LAST)


def _mend(write: Write, sealer: Sealer, one: Misdated) -> int:
    from sqlalchemy import and_, select, update

    from anaphora.store.db.schema import metadata

    table = metadata.tables[one.table]
    names = [column.name for column in table.primary_key.columns]
    values = (one.namespace, *one.key)
    here = and_(*(table.c[name] == value for name, value in zip(names, values, strict=True)))
    row = write.connection.execute(select(table).where(here)).mappings().one_or_none()
    if row is None:
        return 0
    opened = sealer.open_row(table.name, dict(row))
    for name in one.columns:
        opened[name] = _nearest(opened[name], nullable=bool(table.c[name].nullable))
    stored = sealer.seal_row(table.name, opened)
    if "seq" in stored and "seq" not in names:
        # Whoever follows truth must see it.
        stored["seq"] = write.take()[0]
    write.connection.execute(
        update(table).where(here).values({n: v for n, v in stored.items() if n not in names})
    )
    return 1


def _nearest(value: Any, *, nullable: bool) -> int | None:
    if isinstance(value, int):
        return min(max(value, _FIRST), _LAST)
    # No number at all: as if it had not been given, or 1970 where one must be.
    return None if nullable else 0
