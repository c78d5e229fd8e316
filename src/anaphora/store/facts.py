"""The sources of facts: the turns and memories that a record was made from, with their texts.

A fact moves with its sources, and is forgotten with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from anaphora.store.hashing import hash_text

if TYPE_CHECKING:
    from anaphora.store.namespace import Row
    from anaphora.store.table_rows import TableTransaction

MEMORY: Final = "memory:"
"""What stands before the id of a memory where a source may be a conversation too."""
OF_MEMORY: Final = -1
"""The position of a source that is a memory, not a turn."""


def bind(work: TableTransaction, record_id: str, sources: Iterable[tuple[str, int, str]]) -> None:
    """Record the sources of a fact: a conversation or memory, the index of a turn, its text."""
    for source, index, text in sources:
        row: Row = {
            "record_id": record_id,
            "conversation_id": source,
            "position": index,
            "turn_hash": hash_text(text),
        }
        work.put("fact_turn", [row])
