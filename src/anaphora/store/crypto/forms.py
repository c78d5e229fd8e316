"""Whether the rows of truth are sealed in the way in which a home opens them.

In: truth and a sealer. Out: nothing, or an error. Clear and sealed rows, or those of two keys, must
never come to lie side by side: who writes for the first time looks at one row of every table that
shows how it is sealed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anaphora.store.crypto.columns import Sealer
from anaphora.store.crypto.plans import PLANS

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

# A digest never holds a user's text: what looks sealed there can be nothing else.
_ASKED: Final = {table: plan.columns for table, plan in PLANS.items() if plan.digests}


def refuse_another_form(truth: Database, sealer: Sealer) -> None:
    """`MissingKey` where rows are sealed and this home is clear, `Tampered` for another key."""
    for table, names in _ASKED.items():
        statement = f"SELECT {', '.join(names)} FROM {table} LIMIT 1"  # noqa: S608 - names of ours
        for row in truth.rows(statement, {}):
            sealer.open_row(table, dict(zip(names, row, strict=True)))
