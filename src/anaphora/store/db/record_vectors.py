"""How vectors of records change: the statements of a write transaction.

In: a `Write`, rows, and how they are sealed. Out: changed tables, each row with a number of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from anaphora.store.crypto.columns import Sealer
from anaphora.store.db.engine import Write
from anaphora.store.db.schema import record, vector

if TYPE_CHECKING:
    from anaphora.store.records.vectors import VectorRow

_AT_ONCE = 256
_INSERT = vector.insert()


def put_vectors(
    write: Write,
    embedder: str,
    rows: Sequence[VectorRow],
    sealer: Sealer,
    *,
    fresh: bool = False,
) -> int:
    """Replace the vectors of these records; those of records that are gone are left out."""
    owners = list(dict.fromkeys(row.record_id for row in rows))
    here = set(owners) if fresh else _cleared(write, embedder, owners)
    kept = [row for row in rows if row.record_id in here]
    if kept:
        write.connection.execute(
            _INSERT,
            [
                sealer.seal_row(
                    "vector",
                    {
                        "namespace": write.namespace,
                        "record_id": row.record_id,
                        "embedder": embedder,
                        "part": row.part,
                        "text_hash": row.text_hash,
                        "data": row.data,
                        "seq": seq,
                    },
                )
                for row, seq in zip(kept, write.take(len(kept)), strict=True)
            ],
        )
    return len(here)


def drop_vectors(write: Write, embedder: str) -> int:
    """Delete every vector of an embedder in the namespace."""
    here = (vector.c.namespace == write.namespace) & (vector.c.embedder == embedder)
    return write.connection.execute(delete(vector).where(here)).rowcount


def _cleared(write: Write, embedder: str, owners: Sequence[str]) -> set[str]:
    """Which of these records exist, without their vectors of this embedder."""
    here: set[str] = set()
    for start in range(0, len(owners), _AT_ONCE):
        some = owners[start : start + _AT_ONCE]
        found = select(record.c.record_id).where(
            record.c.namespace == write.namespace, record.c.record_id.in_(some)
        )
        here.update(write.connection.execute(found).scalars())
        old = delete(vector).where(
            vector.c.namespace == write.namespace,
            vector.c.embedder == embedder,
            vector.c.record_id.in_(some),
        )
        write.connection.execute(old)
    return here
