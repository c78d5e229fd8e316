"""What was read of records at one version of the database: a question asked again reads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from anaphora.recall.view_cache import ViewCache
from anaphora.values.memories import MemoryRecord

MOST_TEXT: Final = 4_000_000
"""Characters of records that are held for the next questions, as long as nothing changes."""

_OVERHEAD: Final = 500


def _weigh_record(record: MemoryRecord) -> int:
    payload = 0 if record.payload is None else len(repr(record.payload))
    return _OVERHEAD + len(record.text) + payload


@dataclass(frozen=True, slots=True)
class RecordReads:
    """Records of one namespace, as they were at the last version asked about.

    `version` is one that the database had before anything was read: what was read under it is at
    least as new, and may be given to a later reader at that version.
    """

    records: ViewCache[MemoryRecord] = field(
        default_factory=lambda: ViewCache(MOST_TEXT, _weigh_record)
    )

    def many(
        self,
        version: int,
        record_ids: Iterable[str],
        read: Callable[[list[str]], Mapping[str, MemoryRecord]],
    ) -> dict[str, MemoryRecord]:
        """The records of these ids that exist, by id; `read` gives those that are not held."""
        ids = list(dict.fromkeys(record_ids))
        cached_records = {record_id: self.records.get(version, record_id) for record_id in ids}
        missing = [record_id for record_id, record in cached_records.items() if record is None]
        loaded_records = read(missing) if missing else {}
        for record in loaded_records.values():
            self.records.put(version, record.id, record)
        pairs = (
            (record_id, cached_records[record_id] or loaded_records.get(record_id))
            for record_id in ids
        )
        return {record_id: record for record_id, record in pairs if record is not None}
