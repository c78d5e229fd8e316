"""The evidence of a namespace, with a note of what was shown of it.

In: what `NamespaceEvidence` takes. Out: the same answers, and `Seen`: the turns and memories whose
words a program could read. Who forgets one of them can so find every trace that may repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anaphora.deep.evidence.scoped import HISTORY_CHARS, MEMORY, NamespaceEvidence, ScopedEvidence
from anaphora.values.deep import DeepSource, Scope

_LINE = re.compile(r"^(.+)#(\d{1,9}) \[", re.MULTILINE)


@dataclass(slots=True)
class Seen:
    """Which turns and memories were shown. `turns` has the indexes of each conversation."""

    turns: dict[str, set[int]] = field(default_factory=dict)
    memories: set[str] = field(default_factory=set)

    def add(self, sources: Iterable[DeepSource]) -> None:
        """Note these."""
        for one in sources:
            if one.conversation_id is not None and one.index is not None:
                self.turns.setdefault(one.conversation_id, set()).add(one.index)
            elif one.id.startswith(MEMORY):
                self.memories.add(one.id.removeprefix(MEMORY))

    def add_lines(self, history: str) -> None:
        """Note the turns of a history, each a line that begins with "conversation#index ["."""
        for found in _LINE.finditer(history):
            self.turns.setdefault(found[1], set()).add(int(found[2]))

    def plain(self) -> dict[str, Any]:
        """For JSON: indexes as ranges [first, last], which are few where many are neighbours."""
        return {
            "turns": {one: _ranges(places) for one, places in self.turns.items()},
            "memories": sorted(self.memories),
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Seen:
        """The inverse of `plain`."""
        turns = {
            one: {place for first, last in ranges for place in range(first, last + 1)}
            for one, ranges in found.get("turns", {}).items()
        }
        return cls(turns, set(found.get("memories", ())))


class WatchedEvidence(NamespaceEvidence):
    """`NamespaceEvidence` for one question; `seen` grows as it is asked."""

    __slots__ = ("seen",)
    seen: Seen

    @classmethod
    def over(cls, lane: NamespaceEvidence) -> WatchedEvidence:
        """The same evidence, watched."""
        made = cls(
            lane.conversations,
            lane.turns,
            lane.recall_turns,
            lane.records,
            lane.recall_memories,
            lane.clock,
        )
        object.__setattr__(made, "seen", Seen())
        return made

    def within(
        self,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        *,
        include_memory: bool = True,
    ) -> ScopedEvidence:
        """As `NamespaceEvidence.within`."""
        # Not super(): a slotted dataclass is another class than the one its body was written in.
        found = NamespaceEvidence.within(
            self, scope, conversation_id, include_memory=include_memory
        )
        return _Scoped(found, self.seen)


class _Scoped(ScopedEvidence):
    def __init__(self, inner: ScopedEvidence, seen: Seen) -> None:
        vars(self).update(vars(inner))
        self._seen = seen

    def search(self, query: str, limit: int = 20, **choice: Any) -> tuple[DeepSource, ...]:
        found = super().search(query, limit, **choice)
        self._seen.add(found)
        return found

    def transcript(self, conversation_id: str, start: int, end: int) -> tuple[DeepSource, ...]:
        found = super().transcript(conversation_id, start, end)
        self._seen.add(found)
        return found

    def history(self, chars: int = HISTORY_CHARS) -> str:
        found = super().history(chars)
        self._seen.add_lines(found)
        return found


def _ranges(places: Iterable[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for place in sorted(places):
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return found
