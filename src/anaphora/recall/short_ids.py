"""Finds what a part of an id stands for: the memory, note, document or conversation."""

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
        """The whole id, of a `kind`. `NotFound`, and `InvalidInput` where several begin or end so,
        or where it is the id of something else."""
        ending = short.strip()
        if not ending:
            noun = "conversation id" if kind == "conversation" else "id"
            raise InvalidInput(noun, short, "must not be blank")
        try:
            return self._find_place(ending) if kind == "any" else self._find(ending, kind)
        except NotFound:
            if kind == "any":
                raise
            try:
                whole_id = self._find_place(ending)
            except NotFound:
                whole_id = ""
            if not whole_id:
                raise
        reason = "it is the place of a turn or a section: `anaphora get` shows it"
        if "#" not in whole_id:
            reason = (
                "it is a conversation: `anaphora conversation show` shows it"
                if kind == "memory"
                else "it is a memory, a note or a document: `anaphora get` shows it"
            )
        raise InvalidInput("id", ending, reason)

    def _find_place(self, ending: str) -> str:
        """The whole id of anything, or of what a place is in, with the place."""
        owner, mark, number = ending.rpartition("#")
        return f"{self._find(owner, 'place')}#{number}" if mark else self._find(ending, "any")

    def _find(self, ending: str, kind: IdKind | Literal["place"]) -> str:
        # A "place" is in a conversation, or in a document.
        ids = chain(
            self._list_ids((self.memories,)) if kind in {"any", "memory"} else (),
            self._list_ids(self.others) if kind != "conversation" else (),
            self._list_thread_ids() if kind != "memory" else (),
        )
        # Those that end so, and those that begin so.
        alike: tuple[set[str], set[str]] = (set(), set())
        lookalike = ""
        hidden, name = is_hidden(ending), composed(ending)
        for record_id in ids:
            if record_id == ending or (hidden and hidden_id(record_id) == ending):
                return record_id
            whole_name = composed(record_id)
            if whole_name == name:
                # The same to the eye: an id that is it to the letter may follow.
                lookalike = record_id
            if len(ending) >= LEAST:
                if whole_name.endswith(name) or short_id(record_id) == ending:
                    alike[0].add(record_id)
                if whole_name.startswith(name):
                    alike[1].add(record_id)
        if lookalike:
            return lookalike
        whole_ids = alike[0] or alike[1]
        if len(whole_ids) > 1:
            several = ", ".join(sorted(whole_ids)[:_SHOWN])
            where = "end" if alike[0] else "begin"
            raise InvalidInput("id", ending, f"several {where} so: {several}")
        if not whole_ids:
            raise NotFound(
                "memory or conversation" if kind == "any" else _CALLED.get(kind, kind), ending
            )
        return whole_ids.pop()

    @staticmethod
    def _list_ids(several: Sequence[Records]) -> Iterator[str]:
        for records in several:
            for rows in records.short_rows():
                yield from (row[0] for row in rows)

    def _list_thread_ids(self) -> Iterator[str]:
        for conversation_id, _ in self.conversations().files():
            yield conversation_id
