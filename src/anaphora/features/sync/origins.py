"""The origins of facts, here and on other devices: a fact moves and goes with its origin.

On one device a fact is bound to the positions and texts of turns; across devices to their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from anaphora.features.sync.codec import Origin, SharedTurn
from anaphora.store.facts import MEMORY, OF_MEMORY
from anaphora.store.hashing import hash_text

if TYPE_CHECKING:
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.table_rows import TableRows

_TABLE: Final = "fact_turn"
Turns = Callable[[str], Sequence[SharedTurn]]
"""The turns of a conversation on this device."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of the facts of one namespace."""

    _rows: TableRows
    _turns: Turns

    def list_for(self, record_id: str) -> list[Origin]:
        """The origins of a fact, by ids that are the same on all devices."""
        origins: list[Origin] = []
        for row in self._rows.find(_TABLE, {"record_id": record_id}):
            source, at = str(row["conversation_id"]), int(row["position"])
            if at == OF_MEMORY:
                origins.append([source, None])
            elif at < len(turns := self._turns(source)):
                origins.append([source, turns[at].id])
        return sorted(origins, key=str)

    def write(self, work: RecordTransaction, record_id: str, origins: Sequence[Origin]) -> None:
        """Bind a fact to these origins, and to no others."""
        targets = {}
        for source, turn in origins:
            binding = self._locate(work, source, turn)
            if binding is not None:
                targets[source, binding[0]] = binding[1]
        deep = self._rows.within(work.write)
        bound = {
            (str(row["conversation_id"]), int(row["position"])): str(row["turn_hash"])
            for row in deep.find(_TABLE, {"record_id": record_id})
        }
        if bound == targets:
            return
        # Bindings refer to the row of the fact, which must exist first.
        work.flush()
        for source, at in bound.keys() - targets.keys():
            deep.drop(_TABLE, {"record_id": record_id, "conversation_id": source, "position": at})
        for (source, at), digest in targets.items():
            if bound.get((source, at)) != digest:
                deep.put(
                    _TABLE,
                    [
                        {
                            "record_id": record_id,
                            "conversation_id": source,
                            "position": at,
                            "turn_hash": digest,
                        }
                    ],
                )

    def follow(self, conversation_id: str, moves: Mapping[int, tuple[int, str]]) -> None:
        """Move the bindings of facts from old positions of turns to new ones, with the text.

        Bindings that are right already stay, so that it can be repeated.
        """
        with self._rows.change() as work:
            moving = []
            for row in work.find(_TABLE, {"conversation_id": conversation_id}):
                at, text = moves.get(int(row["position"]), (None, ""))
                if at not in (None, row["position"]) and row["turn_hash"] == hash_text(text):
                    moving.append((row, at))
            for row, _ in moving:
                work.drop(
                    _TABLE,
                    {name: row[name] for name in ("record_id", "conversation_id", "position")},
                )
            for row, at in moving:
                work.put(_TABLE, [row | {"position": at}])

    def _locate(
        self, work: RecordTransaction, source: str, turn: str | None
    ) -> tuple[int, str] | None:
        """The position of a source and the digest of its text; None if it is not on this device."""
        if turn is None:
            record = work.find(source.removeprefix(MEMORY))
            return None if record is None else (OF_MEMORY, hash_text(record.text))
        for at, candidate in enumerate(self._turns(source)):
            if candidate.id == turn:
                return at, hash_text(candidate.text)
        return None
