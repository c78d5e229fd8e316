"""What one change of records wrote, for indexes that follow the database in the same program."""

from __future__ import annotations

from dataclasses import dataclass

from anaphora.store.records.rows import RecordLink
from anaphora.values.memories import MemoryRecord


@dataclass(frozen=True, slots=True)
class WrittenRecords:
    """All that was written in a namespace between two of its numbers, `before` and `after`.

    `records` are those that are new or changed, `vectors` what was kept of each record's, by its
    id: the bytes of all its parts, of `embedder`; `links` are the new ones.
    """

    before: int
    after: int
    records: tuple[MemoryRecord, ...]
    embedder: str = ""
    vectors: tuple[tuple[str, bytes], ...] = ()
    links: tuple[RecordLink, ...] = ()
