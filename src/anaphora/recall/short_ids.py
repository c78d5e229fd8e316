"""Finds what a short id stands for: the memory, note, document or conversation that ends so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from anaphora.core.hidden_ids import hidden_id, is_hidden
from anaphora.core.names import composed
from anaphora.core.short_ids import LEAST, short_id
from anaphora.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from anaphora.store.records.store import Records
    from anaphora.store.threads.conversations import Conversations

_SHOWN: Final = 5
IdKind = Literal["any", "memory", "conversation"]
_CALLED: Final = {"place": "conversation"}


@dataclass(frozen=True, slots=True)
class ShortIds:
    """The ids of one namespace."""

    memories: Records
    notes: Records
    documents: Records
    conversations: Callable[[], Conversations]

    def resolve(self, short: str, kind: IdKind = "any") -> str:
        """The whole id, of a `kind`. `NotFound`, and `InvalidInput` where several end so."""
        wanted = short.strip()
        if not wanted:
            noun = "conversation id" if kind == "conversation" else "id"
            raise InvalidInput(noun, short, "must not be blank")
        if kind == "any":
            conversation, mark, index = wanted.rpartition("#")
            if mark:
                return f"{self._one(conversation, 'place')}#{index}"
        return self._one(wanted, kind)

    def _one(self, wanted: str, kind: IdKind | Literal["place"]) -> str:
        # A "place" is in a conversation, or in a document.
        ids = chain(
            self._ids((self.memories, self.notes)) if kind in {"any", "memory"} else (),
            self._ids((self.documents,)) if kind != "conversation" else (),
            self._threads() if kind != "memory" else (),
        )
        ends: set[str] = set()
        alike = ""
        hidden, name = is_hidden(wanted), composed(wanted)
        for one in ids:
            if one == wanted or (hidden and hidden_id(one) == wanted):
                return one
            if composed(one) == name:
                # The same to the eye: an id that is it to the letter may follow.
                alike = one
            if len(wanted) >= LEAST and (composed(one).endswith(name) or short_id(one) == wanted):
                ends.add(one)
        if alike:
            return alike
        if len(ends) > 1:
            several = ", ".join(sorted(ends)[:_SHOWN])
            raise InvalidInput("id", wanted, f"several end so: {several}")
        if not ends:
            raise NotFound(
                "memory or conversation" if kind == "any" else _CALLED.get(kind, kind), wanted
            )
        return ends.pop()

    @staticmethod
    def _ids(several: Sequence[Records]) -> Iterator[str]:
        for records in several:
            for rows in records.short_rows():
                yield from (row[0] for row in rows)

    def _threads(self) -> Iterator[str]:
        for conversation_id, _ in self.conversations().files():
            yield conversation_id
