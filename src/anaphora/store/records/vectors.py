"""Vectors of memories in truth: float16 rows, by record, embedder and part.

In: bytes of little-endian float16 numbers. Out: the same. Vectors belong to truth, so nothing is
embedded twice, but they may come later than the record: `owners_without` names what is missing.
Vectors of different embedders are never given together. In a sealed home they are sealed in truth,
and clear in what comes out. It never computes a vector, and its reads import no SQLAlchemy on
SQLite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.hashing import embedded_text_hash
from anaphora.store.records.rows import COLUMNS, MEMORY

if TYPE_CHECKING:
    from numpy import floating
    from numpy.typing import NDArray

    from anaphora.store.db.engine import Database, Write

_SINCE = (
    "SELECT record_id, part, data, seq FROM vector v "
    "WHERE namespace = :namespace AND embedder = :embedder AND seq > :since "
    "AND EXISTS (SELECT 1 FROM record r WHERE r.namespace = v.namespace "
    "AND r.record_id = v.record_id AND r.kind IN {kinds}) "
    "ORDER BY seq LIMIT :limit"
)
_WITHOUT = (
    f"SELECT {', '.join(COLUMNS)} FROM record "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND kind IN {kinds} "
    "AND forgotten_at IS NULL AND record_id > :after AND NOT EXISTS ("
    "SELECT 1 FROM vector WHERE vector.namespace = record.namespace "
    "AND vector.record_id = record.record_id AND vector.embedder = :embedder) "
    "ORDER BY record_id LIMIT :limit"
)
_COUNTS = (
    "SELECT embedder, COUNT(DISTINCT record_id), COUNT(*) FROM vector "
    "WHERE namespace = :namespace GROUP BY embedder ORDER BY embedder"
)
_MEMORIES = (
    "SELECT COUNT(*) FROM record WHERE namespace = :namespace AND kind IN {kinds} "
    "AND forgotten_at IS NULL"
)
_BATCH = 8192


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One part's vector of a record. `text_hash` is that of the whole text that was embedded."""

    record_id: str
    part: int
    text_hash: str
    data: bytes


@dataclass(frozen=True, slots=True)
class VectorBatch:
    """Vectors in order of their numbers: `data` holds those of `record_ids`, one after another.

    `seq` is the number of the last one.
    """

    record_ids: tuple[str, ...]
    parts: tuple[int, ...]
    data: bytes
    seq: int


@dataclass(frozen=True, slots=True)
class Owner:
    """A record without a vector, and the text to embed."""

    record_id: str
    text: str


def vector_rows(record_id: str, text: str, vectors: NDArray[floating[Any]]) -> list[VectorRow]:
    """What is kept of a record's vectors, shape (parts, dimensions): float16, little-endian."""
    digest = embedded_text_hash(text)
    return [
        VectorRow(record_id, part, digest, row.tobytes())
        for part, row in enumerate(vectors.astype("<f2"))
    ]


class RecordVectors:
    """The vectors of one namespace's memories, or of its records of other `kinds`."""

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer = CLEAR,
        *,
        kinds: Iterable[str] = (MEMORY,),
    ) -> None:
        self._truth = truth
        self.namespace = namespace
        self._sealer = sealer
        # Names of ours, never a caller's words.
        self._kinds = "(" + ", ".join(f"'{kind}'" for kind in kinds) + ")"

    def put(
        self,
        embedder: str,
        rows: Iterable[VectorRow],
        write: Write | None = None,
        *,
        fresh: bool = False,
    ) -> int:
        """Keep vectors, in place of what their records had; return for how many records.

        All in one transaction, that of `write` if given. A record that is gone meanwhile is left
        out. `fresh` says that all records were made by this very write, so that nothing need be
        looked up. `StoreError` and its kinds when truth cannot be written.
        """
        from anaphora.store.db.record_vectors import put_vectors

        given = list(rows)
        if not given:
            return 0
        if write is not None:
            return put_vectors(write, embedder, given, self._sealer, fresh=fresh)
        with self._truth.write(self.namespace) as own:
            self._sealer.check()
            return put_vectors(own, embedder, given, self._sealer)

    def drop(self, embedder: str) -> int:
        """Delete every vector of an embedder; return how many rows that were."""
        from anaphora.store.db.record_vectors import drop_vectors

        with self._truth.write(self.namespace) as write:
            return drop_vectors(write, embedder)

    def get_all(self, embedder: str, since: int = 0, batch: int = _BATCH) -> Iterator[VectorBatch]:
        """All vectors of an embedder with numbers above `since`, in batches, in their order."""
        opener = self._sealer.opener("vector", "data", self.namespace)
        while True:
            rows = self._rows(_SINCE, embedder=embedder, since=since, limit=batch)
            if not rows:
                return
            owners, parts, data, numbers = zip(*rows, strict=True)
            since = numbers[-1]
            if self._sealer.sealed:
                keys = zip(owners, parts, data, strict=True)
                data = tuple(opener((one, embedder, part), blob) for one, part, blob in keys)
            yield VectorBatch(owners, parts, b"".join(data), since)

    def owners_without(
        self, embedder: str, *, after: str = "", limit: int = 512
    ) -> tuple[Owner, ...]:
        """Records that have no vector of this embedder, by id from after `after` on."""
        rows = self._rows(_WITHOUT, embedder=embedder, after=after, limit=limit)
        opened = open_rows(self._sealer, "record", COLUMNS, self.namespace, rows, only=())
        at = COLUMNS.index("text")
        return tuple(Owner(row[0], row[at]) for row in opened)

    def records(self) -> int:
        """How many memories there are, past ones included."""
        # A home without a database yet has no row to count in.
        return sum(int(count) for (count,) in self._rows(_MEMORIES))

    def counts(self) -> dict[str, tuple[int, int]]:
        """(records, vectors) by embedder."""
        rows = self._rows(_COUNTS)
        return {embedder: (records, vectors) for embedder, records, vectors in rows}

    def _rows(self, statement: str, **values: str | int) -> list[tuple[Any, ...]]:
        self._sealer.check()
        statement = statement.replace("{kinds}", self._kinds)
        return self._truth.rows(statement, {"namespace": self.namespace, **values})
