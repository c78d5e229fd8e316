"""The rows of deep recall in truth: answers, gaps, traces, jobs, what was extracted.

In: rows as mappings from column to value, and what to find them by. Out: the same. What they mean
is said in `anaphora.deep`; here they are sealed and opened on their way, and every row that is
written takes the next number of its namespace. Reads are plain SQL that both databases know: on
SQLite they import no SQLAlchemy. It never reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from anaphora.store.crypto.columns import CLEAR, Sealer, refuse_another_form

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Write

Row = dict[str, Any]
Where = Mapping[str, str | int]

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "answer": ("answer_key", "seq", "made_at", "expires_at", "body", "evidence"),
    "gap": (
        "gap_id", "seq", "question_key", "conversation_id", "kind", "status", "priority", "asked",
        "created_at", "expires_at", "closed_at", "question", "details", "closed_by",
    ),
    "trace": ("trace_id", "seq", "made_at", "question", "body", "seen"),
    "session_job": ("job_id", "seq", "conversation_id", "kind", "made_at", "attempts"),
    "extraction": ("conversation_id", "seq", "made_at", "content_hash"),
    "fact_turn": ("record_id", "conversation_id", "position", "seq", "turn_hash"),
}  # fmt: skip
"""The columns of each table but its namespace."""

_LOOKUPS = frozenset({"answer_key", "question_key", "conversation_id"})


class DeepRows:
    """The rows of one namespace. Every read sees every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self.truth = truth
        self.namespace = namespace
        self._sealer = sealer
        self._known_form = False

    def find(
        self,
        table: str,
        where: Where | None = None,
        *,
        newest: bool = False,
        limit: int | None = None,
        only: Sequence[str] | None = None,
    ) -> list[Row]:
        """The rows whose columns have these values, the oldest change first, or the newest.

        `only` reads these columns alone, the primary key among them.
        """
        self._sealer.check()
        # Some columns alone do not show how they are sealed.
        self._refuse_another_form()
        columns = tuple(only or COLUMNS[table])
        statement, values = _select(table, columns, where or {}, newest, limit)
        values = _given(self._sealer, self.namespace, values)
        found = self.truth.rows(statement, {"namespace": self.namespace, **values})
        return [self._opened(table, columns, row) for row in found]

    @contextmanager
    def change(self) -> Iterator[DeepTransaction]:
        """One write transaction, kept whole or not. `ReadOnly`, `DiskFull` or `StoreError`."""
        self._refuse_another_form()
        with self.truth.write(self.namespace) as write:
            # Within the transaction: from here on no conversion can begin to change rows.
            self._sealer.check()
            yield self.within(write)

    def within(self, write: Write) -> DeepTransaction:
        """The same, in a write of this namespace that somebody else has begun."""
        return DeepTransaction(write, self._sealer)

    def _refuse_another_form(self) -> None:
        """Clear and sealed rows, or those of two keys, must never come to lie side by side."""
        if not self._known_form:
            refuse_another_form(self.truth, self._sealer)
            self._known_form = True

    def _opened(self, table: str, columns: Sequence[str], row: Sequence[Any]) -> Row:
        given = dict(zip(columns, row, strict=True), namespace=self.namespace)
        opened = self._sealer.open_row(table, given)
        return {name: opened[name] for name in columns}


class DeepTransaction:
    """One change to these rows, inside a write transaction."""

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        self.write = write
        self._sealer = sealer

    def find(
        self,
        table: str,
        where: Where | None = None,
        *,
        newest: bool = False,
        limit: int | None = None,
    ) -> list[Row]:
        """As `DeepRows.find`, as the rows stand in this transaction."""
        from sqlalchemy import select

        from anaphora.store.db.schema import metadata

        made, namespace = metadata.tables[table], self.write.namespace
        chosen = select(*(made.c[name] for name in COLUMNS[table])).where(
            made.c.namespace == namespace,
            *(made.c[n] == v for n, v in _given(self._sealer, namespace, where or {}).items()),
        )
        chosen = chosen.order_by(made.c.seq.desc() if newest else made.c.seq).limit(limit)
        return [
            {
                name: value
                for name, value in self._sealer.open_row(
                    table, {**dict(row._mapping), "namespace": namespace}
                ).items()
                if name != "namespace"
            }
            for row in self.write.connection.execute(chosen)
        ]

    def put(self, table: str, rows: Iterable[Row]) -> None:
        """Write rows, each in place of the one with its key; each takes the next number."""
        from anaphora.store.crypto.plans import PLANS
        from anaphora.store.db.schema import metadata

        key = PLANS[table].key[1:]
        for row in rows:
            self.drop(table, {name: row[name] for name in key})
            whole = {**row, "namespace": self.write.namespace, "seq": self.write.take()[0]}
            stored = self._sealer.seal_row(table, whole)
            self.write.connection.execute(metadata.tables[table].insert(), stored)

    def drop(self, table: str, where: Where | None = None) -> int:
        """Delete the rows whose columns have these values; how many there were."""
        from sqlalchemy import delete

        from anaphora.store.db.schema import metadata

        made, namespace = metadata.tables[table], self.write.namespace
        gone = delete(made).where(
            made.c.namespace == namespace,
            *(made.c[n] == v for n, v in _given(self._sealer, namespace, where or {}).items()),
        )
        return self.write.connection.execute(gone).rowcount


def _select(
    table: str, columns: Sequence[str], where: Where, newest: bool, limit: int | None
) -> tuple[str, dict[str, str | int]]:
    tests = "".join(f" AND {name} = :w_{name}" for name in where)
    order = "seq DESC" if newest else "seq"
    cut = "" if limit is None else f" LIMIT {limit:d}"
    statement = (
        f"SELECT {', '.join(columns)} FROM {table} "  # noqa: S608 - names of ours
        f"WHERE namespace = :namespace{tests} ORDER BY {order}{cut}"
    )
    return statement, {f"w_{name}": value for name, value in where.items()}


def _given(sealer: Sealer, namespace: str, values: Where) -> dict[str, str | int]:
    """Values to compare with: digests and ids as a sealed home keeps them."""
    given: dict[str, str | int] = {}
    for name, value in values.items():
        column = name.removeprefix("w_")
        hidden = column in _LOOKUPS and isinstance(value, str)
        given[name] = sealer.lookup(column, namespace, str(value)) if hidden else value
    return given
