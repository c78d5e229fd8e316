"""Chats that a program copied under another id, and the stored chats that have their messages.

A session that was forked is told by its ancestors' ids, and what it repeats of them by its words at
its place: it goes on in the chat that has them. What it repeats of one that is not here stands in
for that one's messages, which take its place when they come in, in whatever order.

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
from anaphora.store.threads.ids import safe_id
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.values.conversations import ImportedConversation, ImportedTurn

_BEFORE_ALL: Final = -1
_OWN: Final = "fork:"
"""What the key of a message begins with, and its session, in a chat that is not its session's."""
_STAND_IN: Final = "copy:"
"""The same of a message that a fork repeats of a session that is not here."""
_TELLING: Final = 20
"""Characters of an answer that is not given twice by chance."""
_LIKE: Final = 16
"""So many of the chats that begin with the same message are compared."""


class CopiedChats:
    """Finds the chat that a copy goes on in, during one import. Not safe to share between threads.

    The messages of a source are read once, when its first chat that is new here comes; later only
    what others wrote since.
    """

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._read_until: dict[str, int] = {}
        self._chats: dict[bytes, str] = {}
        # The chats in which sessions go on, or that have what was copied of them.
        self._homes: dict[tuple[str, str], str] = {}
        # The chats that begin with a message, and whether with one that was copied.
        self._begun: dict[bytes, dict[str, bool]] = {}
        # Where chats of this import went, and the keys that their messages got there: a long one
        # comes in several pieces.
        self._went: dict[tuple[str, str], tuple[str, str]] = {}
        self._keys: dict[tuple[str, str], dict[str, str]] = {}

    def resolve(
        self, item: ImportedConversation, known: Mapping[str, TurnNote]
    ) -> ImportedConversation:
        """The conversation as a piece of the chat that holds its messages, or as it is.

        `known` are the messages of its own chat: one that came in under its own id stays there.
        """
        own_chat = (item.source, item.key)
        has_own = any(not key.startswith((_OWN, _STAND_IN)) for key in known)
        is_session = item.place is not None or item.unique_keys
        if not is_session or has_own or (known and not item.copy_of):
            return item
        if own_chat not in self._went:
            home = self._find_home(item) if item.unique_keys and not known else None
            if home is None:
                return self._resolve_session(item, known)
            self._went[own_chat] = home
        key, conversation_id = self._went[own_chat]
        return replace(item, key=key, conversation_id=conversation_id)

    def settle(self, source: str) -> None:
        """Mark all that is written of a source as read, while no other import of it may write."""
        if source in self._read_until:
            self._read_until[source] = self._sidecar.version()

    def _resolve_session(
        self, item: ImportedConversation, known: Mapping[str, TurnNote]
    ) -> ImportedConversation:
        """A session as a piece of the chat that has its ancestors, or what was copied of it."""
        home, notes = self._find_ancestor(item, known)
        source, own_mark = item.source, f"{_OWN}{item.key}"
        copied_mark = f"{_STAND_IN}{item.copy_of[0]}" if item.copy_of else own_mark
        keys = self._keys.setdefault((source, item.key), {})
        for turn in item.turns:
            keys[turn.key] = f"{copied_mark if turn.copied else own_mark}:{turn.key}"
        repeated = zip(item.turns, repeated_keys(item, notes), strict=False)
        keys.update((turn.key, key) for turn, key in repeated if key)
        if item.turns and item.turns[0].parent is None:
            first_turn = item.turns[0]
            start = _digest_parts(source, stored_turn_hash(first_turn.role, first_turn.text))
            is_copied = keys[first_turn.key].startswith(_STAND_IN)
            self._begun.setdefault(start, {}).setdefault(home, is_copied)
        if home == item.key and not known:
            return item
        self._homes[source, item.key] = home
        if item.copy_of:
            self._homes.setdefault((source, item.copy_of[0]), home)
        turns = [
            replace(turn, key=keys[turn.key], parent=keys.get(turn.parent or "", turn.parent))
            for turn in item.turns
        ]
        calls = [replace(call, after=keys.get(call.after, call.after)) for call in item.calls]
        names = (item.title, item.former_titles) if home == item.key else ("", ())
        return replace(
            item, key=home, conversation_id=safe_id(source, home),
            turns=tuple(turns), calls=tuple(calls), title=names[0], former_titles=names[1],
        )  # fmt: skip

    def _find_ancestor(
        self, item: ImportedConversation, known: Mapping[str, TurnNote]
    ) -> tuple[str, Mapping[str, TurnNote]]:
        """The chat that a session goes on in, and its messages: its own, if nothing tells more."""
        if known:
            return item.key, known
        for chat in item.copy_of:
            if notes := self._sidecar.known(item.source, chat):
                return chat, notes
        self._read(item.source)
        for chat in (item.key, *item.copy_of):
            # An ancestor that went into the chat of its own, or what another copied of it.
            if home := self._homes.get((item.source, chat)):
                return home, self._sidecar.known(item.source, home)
        if item.turns:
            # Nothing but the words tells which chat its ancestors were, or of which it is one.
            first_turn = item.turns[0]
            start = _digest_parts(item.source, stored_turn_hash(first_turn.role, first_turn.text))
            alike = [
                chat
                for chat, is_copied in self._begun.get(start, {}).items()
                if is_copied or item.copy_of
            ]
            for chat in reversed(alike[-_LIKE:]):
                notes = self._sidecar.known(item.source, chat)
                repeated = repeated_keys(item, notes)
                if any(map(_is_telling, item.turns[: len(repeated)])):
                    return chat, notes
        return item.copy_of[0] if item.copy_of else item.key, {}

    def _read(self, source: str) -> None:
        """Read the messages of a source that were written since."""
        since = self._read_until.get(source, _BEFORE_ALL)
        # Before the rows: what is written meanwhile is read again.
        until = self._sidecar.version()
        if until != since:
            for chat, message_key, words, index in self._sidecar.messages_since(source, since):
                self._chats[_digest_parts(source, message_key, words)] = chat
                mark = next(filter(message_key.startswith, (_OWN, _STAND_IN)), "")
                if index == 0:
                    start = _digest_parts(source, words)
                    self._begun.setdefault(start, {})[chat] = mark == _STAND_IN
                if mark:
                    self._homes[source, message_key.split(":")[1]] = chat
            self._read_until[source] = until

    def _find_home(self, item: ImportedConversation) -> tuple[str, str] | None:
        """Chat and conversation that hold the most of its messages."""
        self._read(item.source)
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


def is_stand_in(note: TurnNote) -> bool:
    """Whether a turn came in with a fork only: its own session may have it as well."""
    return (note.message_key or "").startswith(_STAND_IN)


def repeated_keys(item: ImportedConversation, known: Mapping[str, TurnNote]) -> list[str]:
    """The keys in a chat of the first messages of a session, as far as it repeats that chat.

    "" is one that stands in for the session's own. Where a message that was forgotten stood, one
    that is known as a copy is taken for it.
    """
    notes = {(note.conversation_id, note.index): note for note in known.values()}
    branches = [branch for branch, index in notes if index == 0]
    at: tuple[str, int] | None = None
    keys: list[str] = []
    sure_count = 0
    for turn in item.turns:
        words = stored_turn_hash(turn.role, turn.text)
        places = [] if at is None else [(at[0], at[1] + 1)]
        if at is None or turn.copied:
            places += [(branch, 0) for branch in branches]
        matches = [
            candidate
            for candidate in places
            if (note := notes.get(candidate)) is not None
            and (note.turn_hash == words or (note.forgotten and turn.copied))
        ]
        if not matches:
            break
        at = matches[0]
        key = notes[at].message_key or ""
        is_own = key.startswith(f"{_STAND_IN}{item.key}:") or not turn.copied
        keys.append("" if is_own and is_stand_in(notes[at]) else key)
        # Two may have been told to go on; two answers are not alike.
        if turn.copied or (_is_telling(turn) and not notes[at].forgotten):
            sure_count = len(keys)
    return keys[:sure_count]


def _is_telling(turn: ImportedTurn) -> bool:
    return turn.role == "assistant" and len(turn.text) >= _TELLING


def _digest_parts(*parts: str) -> bytes:
    hasher = hashlib.blake2b(digest_size=12)
    for part in parts:
        part_bytes = part.encode("utf-8", "surrogatepass")
        hasher.update(len(part_bytes).to_bytes(8, "big") + part_bytes)
    return hasher.digest()
