"""Chats that a program copied under another id, and the stored chats that have their messages.

A session that goes to the background, is forked or resumed is copied by some programs, with the
messages' own ids, under a new id of the session. A message with the same key and the same words is
the same message: the copy goes on in the chat that has it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.values.conversations import ImportedConversation

_BEFORE_ALL: Final = -1


class CopiedChats:
    """Finds the chat that a copy goes on in, during one import. Not safe to share between threads.

    The messages of a source are read once, when its first chat that is new here comes; later only
    what others wrote since.
    """

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._read_until: dict[str, int] = {}
        self._chats: dict[bytes, str] = {}
        # Where chats of this import went: a long one comes in several pieces.
        self._went: dict[tuple[str, str], tuple[str, str]] = {}

    def resolve(
        self, item: ImportedConversation, known: Mapping[str, TurnNote]
    ) -> ImportedConversation:
        """The conversation as a piece of the chat that holds its messages, or as it is.

        `known` are the messages of its own chat: one that came in under its own id stays there.
        """
        own_chat = (item.source, item.key)
        if not item.unique_keys or known:
            return item
        if own_chat not in self._went:
            home = self._find_home(item)
            if home is None:
                return item
            self._went[own_chat] = home
        key, conversation_id = self._went[own_chat]
        return replace(item, key=key, conversation_id=conversation_id)

    def settle(self, source: str) -> None:
        """Mark all that is written of a source as read, while no other import of it may write."""
        if source in self._read_until:
            self._read_until[source] = self._sidecar.version()

    def _find_home(self, item: ImportedConversation) -> tuple[str, str] | None:
        """Chat and conversation that hold the most of its messages."""
        since = self._read_until.get(item.source, _BEFORE_ALL)
        # Before the rows: what is written meanwhile is read again.
        until = self._sidecar.version()
        if until != since:
            for chat, message_key, words in self._sidecar.messages_since(item.source, since):
                self._chats[_digest_parts(item.source, message_key, words)] = chat
            self._read_until[item.source] = until
        marks = [
            _digest_parts(item.source, turn.key, stored_turn_hash(turn.role, turn.text))
            for turn in item.turns
        ]
        hits: Counter[str] = Counter()
        for turn, mark in zip(item.turns, marks, strict=True):
            # What was forgotten is known by its key alone.
            home_chat = self._chats.get(mark) or self._chats.get(
                _digest_parts(item.source, turn.key, "")
            )
            if home_chat is not None and home_chat != item.key:
                hits[home_chat] += 1
        home = None
        if hits:
            (key, _), *_ = hits.most_common(1)
            notes = self._sidecar.known(item.source, key)
            note = next((notes[turn.key] for turn in item.turns if turn.key in notes), None)
            if note is not None:
                # A branch is named after the conversation that it left.
                home = key, note.conversation_id.partition("~")[0]
        for mark in marks:
            self._chats.setdefault(mark, item.key if home is None else home[0])
        return home


def _digest_parts(*parts: str) -> bytes:
    hasher = hashlib.blake2b(digest_size=12)
    for part in parts:
        part_bytes = part.encode("utf-8", "surrogatepass")
        hasher.update(len(part_bytes).to_bytes(8, "big") + part_bytes)
    return hasher.digest()
