"""Where the messages of a data set came to lie, once they were imported."""

from __future__ import annotations

from collections.abc import Collection

from anaphora.api.memory import Memory
from anaphora.errors import NotFound, StoreError
from anaphora.values.conversations import ImportedConversation, Recall, TurnHit
from bench.conversations.report import Key
from bench.datasets import MessageKey

WHOLE = -1
"""The index that stands for a whole conversation."""


class Places:
    """Where the messages of a data set came to lie: (conversation id, key) to (id, index)."""

    def __init__(self) -> None:
        self._keys: dict[MessageKey, Key] = {}
        self._texts: dict[Key, str] = {}

    def add(self, memory: Memory, conversation: ImportedConversation) -> int:
        """Take in an imported conversation; gives the number of its turns.

        Threads keep the order of the source and may leave messages out, never change one: so the
        two are laid side by side by their texts. Raises `StoreError` if that does not come out.
        """
        identity = conversation.conversation_id
        thread = memory.conversations.get(identity)
        if thread is None:
            raise NotFound("conversation", identity)
        index = 0
        for turn in conversation.turns:
            if index < len(thread.turns) and thread.turns[index].text == turn.text:
                self._keys[(identity, turn.key)] = (identity, index)
                self._texts[(identity, index)] = turn.text
                index += 1
        if index != len(thread.turns):
            raise StoreError("measure", identity, f"turn {index} is not what was imported")
        self._keys[(identity, "")] = (identity, WHOLE)
        self._texts[(identity, WHOLE)] = ""
        return len(thread.turns)

    def keys(self, evidence: Collection[MessageKey]) -> tuple[frozenset[Key], int]:
        """The turns that the evidence names, and how many of it were not imported."""
        found = frozenset(self._keys[key] for key in evidence if key in self._keys)
        return found, len(evidence) - len(found)

    def text(self, key: Key) -> str:
        """The words of a turn."""
        return self._texts[key]

    def check(self, recall: Recall[TurnHit]) -> None:
        """Raise `StoreError` if a hit's words are not those of the turn that it names."""
        for hit in recall:
            if self._texts.get((hit.conversation_id, hit.index)) != hit.text:
                reason = f"turn {hit.index} was recalled with other words than were imported"
                raise StoreError("measure", hit.conversation_id, reason)
