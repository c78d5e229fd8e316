"""Chats that a program copied under another id, and the stored chats that have their messages.

A session that was forked is told by its ancestors' ids, and what it repeats of them by its words at
its place. What it says itself, and what it repeats of one that is not here, has keys of its own; a
parent that comes in later takes over what is its own (`is_stand_in`).

A session that goes to the background, is forked or resumed is copied by some programs, with the
messages' own ids, under a new id of the session. A message with the same key and the same words is
the same message: the copy goes on in the chat that has it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.ids import safe_id
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.values.conversations import ImportedConversation, ImportedTurn

_BEFORE_ALL: Final = -1
_FORK: Final = "fork:"
_TELLING: Final = 20
"""Characters of an answer that is not given twice by chance."""


class CopiedChats:
    """Finds the chat that a copy goes on in, during one import. Not safe to share between threads.

    The messages of a source are read once, when its first chat that is new here comes; later only
    what others wrote since.
    """

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._read_until: dict[str, int] = {}
        self._chats: dict[bytes, str] = {}
        # The chats in which forked sessions go on.
        self._forks: dict[tuple[str, str], str] = {}
        # Chats by their first two messages, and the first messages of those with one.
        self._starts: dict[bytes, str] = {}
        self._firsts: dict[tuple[str, str], str] = {}
        self._begun: set[tuple[str, str]] = set()
        # Where chats of this import went: a long one comes in several pieces.
        self._went: dict[tuple[str, str], tuple[str, str]] = {}

    def resolve(
        self, item: ImportedConversation, known: Mapping[str, TurnNote]
    ) -> ImportedConversation:
        """The conversation as a piece of the chat that holds its messages, or as it is.

        `known` are the messages of its own chat: one that came in under its own id stays there.
        """
        own_chat = (item.source, item.key)
        if known:
            return item
        if own_chat not in self._went:
            home = self._find_home(item) if item.unique_keys else None
            if home is None:
                return self._resolve_fork(item) if item.copy_of else item
            self._went[own_chat] = home
        key, conversation_id = self._went[own_chat]
        return replace(item, key=key, conversation_id=conversation_id)

    def settle(self, source: str) -> None:
        """Mark all that is written of a source as read, while no other import of it may write."""
        if source in self._read_until:
            self._read_until[source] = self._sidecar.version()

    def _resolve_fork(self, item: ImportedConversation) -> ImportedConversation:
        """A forked session as a piece of the chat of its first ancestor that is here."""
        home, known_notes = self._find_ancestor(item)
        keys = dict(
            zip(
                (turn.key for turn in item.turns),
                repeated_keys(item.turns, known_notes),
                strict=False,
            )
        )
        for turn in item.turns:
            keys.setdefault(turn.key, f"{_FORK}{item.key}:{turn.key}")
        turns = [
            replace(turn, key=keys[turn.key], parent=keys.get(turn.parent or "", turn.parent))
            for turn in item.turns
        ]
        calls = [replace(call, after=keys.get(call.after, call.after)) for call in item.calls]
        return replace(
            item, key=home, conversation_id=safe_id(item.source, home),
            turns=tuple(turns), calls=tuple(calls), title="", former_titles=(),
        )  # fmt: skip

    def _find_ancestor(self, item: ImportedConversation) -> tuple[str, Mapping[str, TurnNote]]:
        for chat in item.copy_of:
            if known_notes := self._sidecar.known(item.source, chat):
                return chat, known_notes
        # Ancestors that went into the chats of theirs.
        self._read(item.source)
        homes = [self._forks.get((item.source, chat)) for chat in (item.key, *item.copy_of)]
        if len(item.turns) > 1 and len(item.turns[1].text) >= _TELLING:
            # Nothing but the words tells which chat its ancestors were.
            start = [stored_turn_hash(turn.role, turn.text) for turn in item.turns[:2]]
            homes.append(self._starts.get(_digest_parts(item.source, *start)))
        home = next((home for home in homes if home is not None), None)
        if home is None:
            return item.copy_of[0], {}
        return home, self._sidecar.known(item.source, home)

    def _read(self, source: str) -> None:
        """Read the messages of a source that were written since."""
        since = self._read_until.get(source, _BEFORE_ALL)
        # Before the rows: what is written meanwhile is read again.
        until = self._sidecar.version()
        if until != since:
            for chat, message_key, words in self._sidecar.messages_since(source, since):
                self._chats[_digest_parts(source, message_key, words)] = chat
                first = self._firsts.pop((source, chat), None)
                if first is not None:
                    self._starts[_digest_parts(source, first, words)] = chat
                elif (source, chat) not in self._begun:
                    self._firsts[source, chat] = words
                self._begun.add((source, chat))
                if message_key.startswith(_FORK):
                    self._forks[source, message_key.split(":")[1]] = chat
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
    return (note.message_key or "").startswith(_FORK)


def repeated_keys(turns: Sequence[ImportedTurn], known: Mapping[str, TurnNote]) -> list[str]:
    """The keys in a chat of the first messages of a fork, as far as it repeats that chat.

    Where a message that was forgotten stood, one that is known as a copy is taken for it.
    """
    notes = {(note.conversation_id, note.index): note for note in known.values()}
    branches = [branch for branch, index in notes if index == 0]
    at: tuple[str, int] | None = None
    keys: list[str] = []
    sure_count = 0
    for turn in turns:
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
        keys.append(notes[at].message_key or "")
        # Two may have been told to go on; two answers are not alike.
        is_answer = turn.role == "assistant" and len(turn.text) >= _TELLING
        if turn.copied or (is_answer and not notes[at].forgotten):
            sure_count = len(keys)
    return keys[:sure_count]


def _digest_parts(*parts: str) -> bytes:
    hasher = hashlib.blake2b(digest_size=12)
    for part in parts:
        part_bytes = part.encode("utf-8", "surrogatepass")
        hasher.update(len(part_bytes).to_bytes(8, "big") + part_bytes)
    return hasher.digest()
