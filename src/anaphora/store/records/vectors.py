"""Vectors of memories in the database: float16 rows, little-endian, by record, embedder and part.

Vectors belong to the database, so nothing is embedded twice, but they may come later than the
record: `owners_without` names what is missing. Vectors of different embedders are never given
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.tables import RECORD, VECTOR
from anaphora.store.hashing import hash_text
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import STEP, NamespaceReader, NamespaceTransaction, ids_named
from anaphora.store.records.rows import MEMORY

if TYPE_CHECKING:
    from numpy import floating
    from numpy.typing import NDArray

    from anaphora.store.db.engine import Database

_OF_ANY = (
    "SELECT record_id, part, data, seq FROM vector v "
    "WHERE namespace = :namespace AND embedder = :embedder AND seq > :since "
    "{own}ORDER BY seq LIMIT :limit"
)
_SINCE = _OF_ANY.replace(
    "{own}",
    "AND EXISTS (SELECT 1 FROM record r WHERE r.namespace = v.namespace "
    "AND r.record_id = v.record_id AND r.kind IN {kinds}) ",
)
_WITHOUT = (
    RECORD.select() + "AND kind IN {kinds} "  # noqa: S608 - names of ours
    "AND forgotten_at IS NULL AND record_id > :after "
    "AND LENGTH(text) > :longer_than AND LENGTH(text) <= :longest AND NOT EXISTS ("
    "SELECT 1 FROM vector WHERE vector.namespace = record.namespace "
    "AND vector.record_id = record.record_id AND vector.embedder = :embedder) "
    "ORDER BY record_id LIMIT :limit"
)
_LACKING = (
    "SELECT COUNT(*) FROM record WHERE namespace = :namespace "  # noqa: S608 - names of ours
    + (_WITHOUT.removeprefix(RECORD.select()).partition("ORDER BY")[0])
)
_ANY_LENGTH = 1 << 62
_COUNTS = (
    "SELECT embedder, COUNT(DISTINCT record_id), COUNT(*) FROM vector "
    "WHERE namespace = :namespace GROUP BY embedder ORDER BY embedder"
)
_MEMORIES = (
    "SELECT COUNT(*) FROM record WHERE namespace = :namespace AND kind IN {kinds} "
    "AND forgotten_at IS NULL"
)
_NUMBERS = (
    "SELECT seq, record_id FROM vector WHERE namespace = :namespace AND embedder = :embedder "
    "AND seq <= :upto ORDER BY seq"
)
_DATA = (
    "SELECT seq, data FROM vector WHERE namespace = :namespace AND embedder = :embedder "
    "AND seq > :since AND seq <= :upto ORDER BY seq LIMIT :limit"
)
_OF = (
    "SELECT record_id, data FROM vector WHERE namespace = :namespace AND embedder = :embedder "
    "AND record_id IN ({ids})"
)
# What is read at once lies in memory twice: small, it leaves no holes behind.
_BATCH = 1024


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One part's vector of a record. `text_hash` is that of the whole text that was embedded."""

    record_id: str
    part: int
    text_hash: str
    data: bytes


_MAPPING = RowMapping(VECTOR, VectorRow)


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
class TextToEmbed:
    """A record without a vector, and the text to embed."""

    record_id: str
    text: str


def vector_rows(
    embedded: Iterable[tuple[str, str, NDArray[floating[Any]]]],
) -> list[VectorRow]:
    """Rows of embedded records: id, text and vectors of each, shape (parts, dimensions).

    Vectors are stored as float16, little-endian.
    """
    rows = []
    for record_id, text, vectors in embedded:
        digest = hash_text(text)
        rows += [
            VectorRow(record_id, part, digest, vector.tobytes())
            for part, vector in enumerate(vectors.astype("<f2"))
        ]
    return rows


class RecordVectors(NamespaceReader):
    """The vectors of one namespace's memories, or of its records of other `kinds`."""

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer = CLEAR,
        *,
        kinds: Iterable[str] = (MEMORY,),
    ) -> None:
        super().__init__(truth, namespace, sealer)
        # Names of ours, never a caller's words.
        self._kinds = "(" + ", ".join(f"'{kind}'" for kind in kinds) + ")"

    def put(self, embedder: str, rows: Iterable[VectorRow]) -> int:
        """Keep vectors, in place of what their records had; return for how many records.

        All in one transaction. A record that is gone meanwhile is left out. `StoreError` and its
        kinds when the database cannot be written.
        """
        rows_to_write = list(rows)
        if not rows_to_write:
            return 0
        with self._writing() as write:
            return VectorTransaction(write, self.sealer).put(embedder, rows_to_write)

    def get_all(self, embedder: str, since: int = 0, batch: int = _BATCH) -> Iterator[VectorBatch]:
        """All vectors of an embedder with numbers above `since`, in batches, in their order."""
        return self._batches(_SINCE, embedder, since, batch)

    def of_any(self, embedder: str, since: int = 0, batch: int = _BATCH) -> Iterator[VectorBatch]:
        """As `get_all`, with those of records of other kinds among them.

        Takes half the time, and the caller tells its own records by their ids.
        """
        return self._batches(_OF_ANY.replace("{own}", ""), embedder, since, batch)

    def _batches(
        self, statement: str, embedder: str, since: int, batch: int
    ) -> Iterator[VectorBatch]:
        while rows := self._asked(statement, embedder=embedder, since=since, limit=batch):
            owners, parts, _, numbers = zip(*rows, strict=True)
            since = numbers[-1]
            yield VectorBatch(owners, parts, b"".join(self._data(VECTOR, embedder, rows)), since)

    # As the index has them on its own disk: only where the home is not sealed.

    def numbers(self, embedder: str, upto: int) -> list[tuple[int, str]]:
        """(number, record id) of the vectors with numbers up to `upto`, in their order."""
        return [(row[0], row[1]) for row in self._rows(_NUMBERS, embedder=embedder, upto=upto)]

    def data_between(
        self, embedder: str, since: int, upto: int, limit: int
    ) -> list[tuple[int, bytes]]:
        """(number, data) of the vectors with numbers above `since` up to `upto`, in their order."""
        rows = self._rows(_DATA, embedder=embedder, since=since, upto=upto, limit=limit)
        return [(row[0], row[1]) for row in rows]

    def data_of(
        self, embedder: str, record_ids: Iterable[str]
    ) -> Iterator[list[tuple[str, bytes]]]:
        """(record id, data) of the vectors of these records, some at a time."""
        for batch, names in ids_named(record_ids):
            rows = self._rows(_OF.format(ids=names), embedder=embedder, **batch)
            yield [(row[0], row[1]) for row in rows]

    def owners_without(
        self,
        embedder: str,
        *,
        after: str = "",
        limit: int = STEP,
        longer_than: int = -1,
        longest: int = _ANY_LENGTH,
    ) -> tuple[TextToEmbed, ...]:
        """Records that have no vector of this embedder, by id from after `after` on.

        Only texts of these lengths, in characters as they are stored: sealed ones are longer.
        """
        rows = self._asked(
            _WITHOUT,
            embedder=embedder,
            after=after,
            limit=limit,
            longer_than=longer_than,
            longest=longest,
        )
        at = RECORD.names.index("text")
        return tuple(TextToEmbed(row[0], row[at]) for row in self._opened(RECORD, rows, only=()))

    def lacking(self, embedder: str) -> int:
        """How many records have no vector of this embedder."""
        rows = self._asked(
            _LACKING, embedder=embedder, after="", longer_than=-1, longest=_ANY_LENGTH
        )
        return sum(int(count) for (count,) in rows)

    def records(self) -> int:
        """How many memories there are, past ones included."""
        # A home without a database yet has no row to count in.
        return sum(int(count) for (count,) in self._asked(_MEMORIES))

    def current(self) -> int:
        """How many memories hold now."""
        return sum(int(count) for (count,) in self._asked(f"{_MEMORIES} AND valid_until IS NULL"))

    def counts(self) -> dict[str, tuple[int, int]]:
        """(records, vectors) by embedder."""
        rows = self._rows(_COUNTS)
        return {embedder: (records, vectors) for embedder, records, vectors in rows}

    def _asked(self, statement: str, **values: str | int) -> list[tuple[Any, ...]]:
        return self._rows(statement.replace("{kinds}", self._kinds), **values)


class VectorTransaction(NamespaceTransaction):
    """What one write transaction does to vectors."""

    def put(self, embedder: str, rows: Sequence[VectorRow], *, fresh: bool = False) -> int:
        """Replace the vectors of these records; those of records that are gone are left out.

        `fresh`: all of them were made by this very write, so that nothing need be looked up.
        """
        owners = list(dict.fromkeys(row.record_id for row in rows))
        if not fresh:
            owners = [row[0] for row in self._rows(RECORD, ("record_id",), record_id=owners)]
            self._delete(VECTOR, embedder=embedder, record_id=owners)
        existing = set(owners)
        written_rows = [row for row in rows if row.record_id in existing]
        self._insert(VECTOR, [_MAPPING.row(row, embedder=embedder) for row in written_rows])
        return len(existing)
