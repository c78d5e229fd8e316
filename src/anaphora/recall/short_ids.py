"""Finds what a short id stands for: the memory, note, document or conversation that ends so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal

from anaphora.errors import InvalidInput, NotFound
from anaphora.language.names import composed
from anaphora.text.hidden_ids import hidden_id, is_hidden
from anaphora.text.short_ids import LEAST, short_id

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
    others: Sequence[Records]
    conversations: Callable[[], Conversations]

    def resolve(self, short: str, kind: IdKind = "any") -> str:
        """The whole id, of a `kind`. `NotFound`, and `InvalidInput` where several end so."""
        ending = short.strip()
        if not ending:
            noun = "conversation id" if kind == "conversation" else "id"
            raise InvalidInput(noun, short, "must not be blank")
        if kind == "any":
            conversation, mark, index = ending.rpartition("#")
            if mark:
                return f"{self._find(conversation, 'place')}#{index}"
        return self._find(ending, kind)

    def _find(self, ending: str, kind: IdKind | Literal["place"]) -> str:
        # A "place" is in a conversation, or in a document.
        ids = chain(
            self._list_ids((self.memories,)) if kind in {"any", "memory"} else (),
            self._list_ids(self.others) if kind != "conversation" else (),
            self._list_thread_ids() if kind != "memory" else (),
        )
        ends: set[str] = set()
        lookalike = ""
        hidden, name = is_hidden(ending), composed(ending)
        for record_id in ids:
            if record_id == ending or (hidden and hidden_id(record_id) == ending):
                return record_id
            if composed(record_id) == name:
                # The same to the eye: an id that is it to the letter may follow.
                lookalike = record_id
            if len(ending) >= LEAST and (
                composed(record_id).endswith(name) or short_id(record_id) == ending
            ):
                ends.add(record_id)
        if lookalike:
            return lookalike
        if len(ends) > 1:
            several = ", ".join(sorted(ends)[:_SHOWN])
            raise InvalidInput("id", ending, f"several end so: {several}")
        if not ends:
            raise NotFound(
                "memory or conversation" if kind == "any" else _CALLED.get(kind, kind), ending
            )
        return ends.pop()

    @staticmethod
    def _list_ids(several: Sequence[Records]) -> Iterator[str]:
        for records in several:
            for rows in records.short_rows():
                yield from (row[0] for row in rows)

    def _list_thread_ids(self) -> Iterator[str]:
        for conversation_id, _ in self.conversations().files():
            yield conversation_id
