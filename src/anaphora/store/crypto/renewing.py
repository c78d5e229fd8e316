"""Rows of a sealed home from before rows had anchors, sealed anew with them.

In: where truth is, and how its rows are opened and sealed. Out: how many rows were renewed. A
namespace changes in one transaction, and what is renewed already is left alone: it may be broken
off anywhere, and several servers may do it at once. A row that does not open stays as it is, to be
refused when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.errors import StoreError, Tampered
from anaphora.store.crypto.cipher import ANCHOR_PREFIX, NOTHING_PREFIX
from anaphora.store.crypto.columns import Sealer
from anaphora.store.crypto.plans import PLANS, Plan

if TYPE_CHECKING:
    from anaphora.store.db.engine import Write

_BATCH = 500
Row = dict[str, Any]
Progress = Callable[[str, int, int], None]


def renew(place: Path | str, older: Sealer, target: Sealer, tell: Progress) -> int:
    """Seal every row anew that has no anchor. `StoreError` and its kinds."""
    if isinstance(place, Path) and not place.exists():
        return 0
    from anaphora.store.db.engine import open_database

    truth = open_database(place)
    try:
        truth.ensure()
        done = 0
        for (namespace,) in truth.rows("SELECT namespace FROM head ORDER BY namespace", {}):
            with truth.write(namespace) as write:
                for table, plan in PLANS.items():
                    if plan.anchor:
                        count = _renew_table(write, (table, plan), older, target)
                        done += count
                        tell(table, count, count)
        return done
    finally:
        truth.close()


def _renew_table(write: Write, table: tuple[str, Plan], older: Sealer, target: Sealer) -> int:
    from sqlalchemy import bindparam, update

    from anaphora.store.db.schema import metadata

    name, plan = table
    made, key = metadata.tables[name], plan.key[1:]
    here = (made.c[one] == bindparam(f"of_{one}") for one in key)
    statement = update(made).where(made.c.namespace == write.namespace, *here)
    statement = statement.values({one: bindparam(f"new_{one}") for one in plan.sealed})
    done = 0
    for batch in _batches(write, made, plan):
        given = []
        for row in batch:
            stored = _renewed(name, plan, row, older, target)
            if stored is not None:
                new = {f"new_{one}": stored[one] for one in plan.sealed}
                given.append({f"of_{one}": row[one] for one in key} | new)
        if given:
            write.connection.execute(statement, given)
            done += len(given)
    return done


def _batches(write: Write, made: Any, plan: Plan) -> Iterator[list[Row]]:
    """All rows of the namespace, in the order of their keys."""
    from sqlalchemy import select, tuple_

    order = [made.c[one] for one in plan.key[1:]]
    chosen = select(*(made.c[one] for one in plan.columns)).where(
        made.c.namespace == write.namespace
    )
    chosen = chosen.order_by(*order).limit(_BATCH)
    asked = chosen
    while found := [dict(row) for row in write.connection.execute(asked).mappings()]:
        yield found
        last = tuple(found[-1][one.name] for one in order)
        asked = chosen.where(tuple_(*order) > last)


def _renewed(name: str, plan: Plan, row: Row, older: Sealer, target: Sealer) -> Row | None:
    """The row with its anchor; None for one that has it, and for one that does not open."""
    anchor = row[plan.anchor]
    if isinstance(anchor, str) and anchor.startswith((ANCHOR_PREFIX, NOTHING_PREFIX)):
        return None
    try:
        opened = older.open_row(name, row)
    except Tampered:
        return None
    stored = target.seal_row(name, opened)
    if target.open_row(name, stored) != opened:
        raise StoreError("renew", name, "a row was not read back as it was written")
    return stored
