"""Rows that make no sense: how they are found, and made readable again.

Two kinds of damage. A time outside the years 1 to 9999, in any table: it becomes the nearest one
that can be kept, and everything else of the row is as it was; such rows are read all the same
(`from_micros`). A record that cannot be read: its words stay, and what was there is kept in an
event; a change to records mends those that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from anaphora.calls.moments import EARLIEST, LATEST
from anaphora.errors import Unreadable
from anaphora.store.codecs import to_micros
from anaphora.store.crypto.columns import Sealer, open_rows
from anaphora.store.db.table import Table
from anaphora.store.db.tables import RECORD, TABLES
from anaphora.store.namespace import STEP, NamespaceTransaction
from anaphora.store.records.rows import RECORD_MAPPING

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

_RECORDS = RECORD.select() + "AND record_id > :after ORDER BY record_id LIMIT :limit"
_KIND = RECORD.names.index("kind")
_FIRST: Final = to_micros(EARLIEST)
_LAST: Final = to_micros(LATEST)


@dataclass(frozen=True, slots=True)
class MisdatedRow:
    """A row by its table, namespace and the rest of its primary key, and the columns meant."""

    table: str
    namespace: str
    key: tuple[str | int, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        key = " ".join(map(str, self.key))
        return f"{self.table} {key} ({self.namespace}): {', '.join(self.columns)}"


def misdated(truth: Database) -> tuple[MisdatedRow, ...]:
    """Every such row, table by table. A database that does not exist yet has none."""
    return tuple(
        misdated_row for table in TABLES.values() for misdated_row in _of_table(truth, table)
    )


def mend_times(truth: Database, sealer: Sealer, rows: Sequence[MisdatedRow]) -> int:
    """Give these rows the nearest times that can be kept; how many were mended."""
    mended_count = 0
    for namespace in dict.fromkeys(row.namespace for row in rows):
        with truth.write(namespace) as write:
            sealer.check()
            work = _Mending(write, sealer)
            mended_count += sum(work.mend(row) for row in rows if row.namespace == namespace)
    return mended_count


def _of_table(truth: Database, table: Table) -> Iterator[MisdatedRow]:
    times = table.moments
    if not times:
        return
    # In SQLite a text is above every number: it is found as well.
    range_condition = " OR ".join(f"{name} < :first OR {name} > :last" for name in times)
    statement = f"SELECT {', '.join(table.key + times)} FROM {table.name} WHERE {range_condition}"  # noqa: S608
    for row in truth.rows(statement, {"first": _FIRST, "last": _LAST}):
        cells = zip(times, row[len(table.key) :], strict=True)
        wrong = tuple(
            name
            for name, cell in cells
            if cell is not None and not (isinstance(cell, int) and _FIRST <= cell <= _LAST)
        )
        yield MisdatedRow(table.name, row[0], row[1 : len(table.key)], wrong)


class _Mending(NamespaceTransaction):
    def mend(self, misdated_row: MisdatedRow) -> int:
        table = TABLES[misdated_row.table]
        key = dict(zip(table.own_key, misdated_row.key, strict=True))
        for row in self.find_rows(table, **key):
            for name in misdated_row.columns:
                if isinstance(row[name], int):
                    row[name] = min(max(row[name], _FIRST), _LAST)
                else:
                    # Not a number: as if none had been given, or 1970 if one must be.
                    row[name] = 0 if table[name].needed else None
            if "seq" in table.own_key:
                self._execute_update(table, [self._stored(table, row)], table.names)
            else:
                # With a new number, so that indexes see it.
                self._update(table, [row])
            return 1
        return 0


def unreadable_records(
    truth: Database, namespace: str, sealer: Sealer
) -> dict[str, tuple[str, ...]]:
    """The ids of records that make no sense, by kind. Reads every record once."""
    ids_by_kind: dict[str, list[str]] = {}
    last_id = ""
    while rows := truth.rows(_RECORDS, {"namespace": namespace, "after": last_id, "limit": STEP}):
        for row in open_rows(sealer, "record", RECORD.names, namespace, rows):
            try:
                RECORD_MAPPING.value(row)
            except Unreadable:
                ids_by_kind.setdefault(row[_KIND], []).append(row[0])
        last_id = rows[-1][0]
    return {kind: tuple(ids) for kind, ids in ids_by_kind.items()}


def mend_records(truth: Database, namespace: str, sealer: Sealer) -> int:
    """Mend the records of a namespace that make no sense; how many. What was there is an event."""
    from anaphora.store.records.transaction import RecordTransaction

    ids_by_kind = unreadable_records(truth, namespace, sealer)
    for kind, ids in ids_by_kind.items():
        with truth.write(namespace) as write:
            sealer.check()
            work = RecordTransaction(write, sealer, kind)
            # A change mends what it touches.
            work.load(ids=ids)
            work.finish()
    return sum(map(len, ids_by_kind.values()))
