"""What was read of records at one version of the database: a question asked again reads nothing.

A version is one that the database had before anything was read: what was read under it is at least
as new, and may be given to a later reader at that version.
"""

from __future__ import annotations

from typing import Final

from anaphora.recall.view_cache import ViewCache
from anaphora.values.memories import MemoryRecord

_MOST_TEXT: Final = 4_000_000
"""Characters of records that are held for the next questions, as long as nothing changes."""
_OVERHEAD: Final = 500


def record_cache() -> ViewCache[MemoryRecord]:
    """A cache of the records of one namespace by their ids. Its views are versions."""
    return ViewCache(_MOST_TEXT, _weigh_record)


def _weigh_record(record: MemoryRecord) -> int:
    payload = 0 if record.payload is None else len(repr(record.payload))
    return _OVERHEAD + len(record.text) + payload
