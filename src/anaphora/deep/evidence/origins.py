"""Where facts come from that a model took out of conversations: their turns and memories.

In: a fact's id and its sources. Out: rows that bind them, and the facts that must go when a source
goes. A fact goes with any one of the turns that one extraction took it from; it stays where
another conversation, or somebody by hand, said the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.deep.evidence.scoped import MEMORY
from anaphora.values.deep import DeepSource

if TYPE_CHECKING:
    from anaphora.store.deep_rows import DeepTransaction, Row
    from anaphora.store.records.transaction import RecordTransaction

EXTRACTED: Final = "extract"
"""The `source` of a memory that was taken out of a conversation."""
DREAMT: Final = "dream"
"""The `source` of a memory that answers a gap: it goes with any of its sources."""

_OF_MEMORY: Final = -1


def turn_hash(text: str) -> str:
    """A digest by which a turn is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def bind(work: DeepTransaction, record_id: str, sources: Iterable[DeepSource]) -> None:
    """Note what a fact was taken from."""
    rows: list[Row] = []
    for one in sources:
        turn = one.conversation_id is not None and one.index is not None
        rows.append(
            {
                "record_id": record_id,
                "conversation_id": one.conversation_id if turn else one.id,
                "position": one.index if turn else _OF_MEMORY,
                "turn_hash": turn_hash(one.text),
            }
        )
    work.put("fact_turn", rows)


def from_memories(
    work: DeepTransaction, records: RecordTransaction, gone: Iterable[str]
) -> list[str]:
    """The facts that were taken from these memories, and that nobody else has said."""
    found: list[str] = []
    for record_id in gone:
        where: dict[str, str | int] = {
            "conversation_id": MEMORY + record_id,
            "position": _OF_MEMORY,
        }
        facts = [row["record_id"] for row in work.find("fact_turn", where)]
        found += [fact for fact in facts if not _said_by_hand(records, fact)]
    return list(dict.fromkeys(found))


def from_turns(
    work: DeepTransaction,
    records: RecordTransaction,
    conversation_id: str,
    stands: Callable[[int, str], bool],
) -> list[str]:
    """The facts that must go now, of those taken from a conversation.

    `stands` says whether the turn at an index still has the text of that digest. What binds a fact
    that may stay to turns that are gone is deleted.
    """
    rows = work.find("fact_turn", {"conversation_id": conversation_id})
    hit = {row["record_id"] for row in rows if not stands(row["position"], row["turn_hash"])}
    gone: list[str] = []
    for record_id in sorted(hit):
        bound = work.find("fact_turn", {"record_id": record_id})
        if _stays(records, record_id, bound, conversation_id):
            where = {"record_id": record_id, "conversation_id": conversation_id}
            work.drop("fact_turn", where)
        else:
            gone.append(record_id)
    return gone


def _stays(
    records: RecordTransaction, record_id: str, bound: Sequence[Row], conversation_id: str
) -> bool:
    if _said_by_hand(records, record_id):
        return True
    if any(event.source == DREAMT for event in records.events(record_id)):
        return False
    return any(row["conversation_id"] != conversation_id for row in bound)


def _said_by_hand(records: RecordTransaction, record_id: str) -> bool:
    return any(
        event.kind in {"added", "restated"} and event.source not in {EXTRACTED, DREAMT}
        for event in records.events(record_id)
    )
