"""What a thread file has no place for: speakers, sources, import identities, branches.

In: notes about turns and conversations. Out: the same, by conversation or by source chat. A note
carries the hash of its turn: one whose turn is not in the thread (a crash came between the two
writes, or another program rewrote the file) is void, and only the reader of the thread can tell.
A home's sealer encrypts them on their way in. It never holds a turn's text, and nothing here
imports SQLAlchemy before the first write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.hashing import stored_turn_hash
from anaphora.values.conversations import NewTurn, Turn

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database, Write

# The same columns in the same order from both tables, so that one function reads the rows. Where
# a place is in both, the living note comes last and wins; so does the later of two equals.
_NOTES = """
SELECT conversation_id, position, turn_hash, speaker, source, source_key, message_key, chat_key,
       0 AS forgotten, '' AS identity_key, seq
  FROM turn_note WHERE namespace = :namespace AND {where}
UNION ALL
SELECT conversation_id, position, NULL, NULL, source, source_key, message_key, chat_key,
       1, identity_key, seq
  FROM forgotten_turn WHERE namespace = :namespace AND {where}
ORDER BY forgotten DESC, seq
"""
_NOTE_COLUMNS = (
    "conversation_id",
    "position",
    "turn_hash",
    "speaker",
    "source",
    "source_key",
    "message_key",
    "chat_key",
    "forgotten",
    "identity_key",
)
_NOTES_AT = _NOTES.format(where="conversation_id = :conversation_id AND position >= :start")
_NOTES_OF_CHAT = _NOTES.format(where="chat_key = :chat_key")
_CHANGED = """
SELECT conversation_id FROM turn_note WHERE namespace = :namespace AND seq > :since
UNION
SELECT conversation_id FROM forgotten_turn WHERE namespace = :namespace AND seq > :since
UNION
SELECT conversation_id FROM conversation_note WHERE namespace = :namespace AND seq > :since
"""
_PLACES = """
SELECT conversation_id, MIN(position) FROM (
  SELECT conversation_id, position FROM turn_note WHERE namespace = :namespace AND seq > :since
  UNION ALL
  SELECT conversation_id, position FROM forgotten_turn
   WHERE namespace = :namespace AND seq > :since
) AS changed GROUP BY conversation_id
"""
_CONVERSATIONS = """
SELECT conversation_id, source, source_key, branch_of, branch_at
  FROM conversation_note WHERE namespace = :namespace
"""
_CONVERSATION_COLUMNS = ("conversation_id", "source", "source_key", "branch_of", "branch_at")


@dataclass(frozen=True, slots=True)
class TurnNote:
    """What is known about the turn at `index` of a conversation, beside its text.

    `turn_hash` is the hash of the turn that the note was written for. `source` (the format),
    `source_key` (the chat in it) and `message_key` (the message in the chat) are the identity of
    an imported turn: all three or none. A `forgotten` note has its identity and place alone:
    `turn_hash` is empty and `speaker` is None.
    """

    conversation_id: str
    index: int
    turn_hash: str
    speaker: str | None = None
    source: str | None = None
    source_key: str | None = None
    message_key: str | None = None
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class ConversationNote:
    """Where a conversation came from. A branch leaves `branch_of` after its turn `branch_at`."""

    conversation_id: str
    source: str | None = None
    source_key: str | None = None
    branch_of: str | None = None
    branch_at: int | None = None


class Sidecar:
    """The notes of one namespace. All reads see every write acknowledged by any process."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self._truth = truth
        self.namespace = namespace
        self._sealer = sealer

    def note_turns(self, notes: Iterable[TurnNote]) -> None:
        """Write notes in one transaction, all or none.

        A note replaces the one at its place; a message that was forgotten and is noted again is
        no longer forgotten. `StoreError` and its kinds when truth cannot be written.
        """
        written = list(notes)
        if written:
            with self._truth.write(self.namespace) as write:
                self.note_turns_within(write, written)

    def note_turns_within(self, write: Write, notes: Iterable[TurnNote]) -> None:
        """As `note_turns`, as a part of a write to this namespace that is under way."""
        from anaphora.store.db import notes as table

        self._sealer.check()
        # Two notes for one place in one call: the last one counts, as in two calls.
        written = {(note.conversation_id, note.index): note for note in notes}
        rows = [_turn_row(note) for note in written.values()]
        if rows:
            table.drop_forgotten(write, self._sealer, [_identity_key(row) for row in rows])
            table.put_turns(write, self._sealer, rows)

    def turn_notes(self, conversation_id: str, start: int = 0) -> dict[int, TurnNote]:
        """The notes of a conversation from turn `start` on, by index, forgotten ones among them."""
        found = self._notes(
            _NOTES_AT, conversation_id=self._lookup("conversation_id", conversation_id), start=start
        )
        by_index = {note.index: note for note in found}
        return dict(sorted(by_index.items()))

    def known(self, source: str, source_key: str) -> dict[str, TurnNote]:
        """Every message of a source chat that is or was here, by message key.

        A message with several notes is given by its newest living one; `forgotten` is set on one
        that was deleted or redacted everywhere, so that an importer leaves it out.
        """
        chat_key = self._lookup("chat_key", _digest("chat", source, source_key))
        found = self._notes(_NOTES_OF_CHAT, chat_key=chat_key)
        return {note.message_key: note for note in found if note.message_key is not None}

    def forget(self, conversation_id: str, index: int | None = None) -> int:
        """Drop what is known of a turn, or of all turns when `index` is None; return how many.

        Speaker and hash go for good. The identity stays as forgotten, so that importing the same
        source again does not bring the turn back. The note about the conversation stays.
        """
        with self._truth.write(self.namespace) as write:
            return self.forget_within(write, conversation_id, index)

    def forget_within(self, write: Write, conversation_id: str, index: int | None = None) -> int:
        """As `forget`, as a part of a write to this namespace that is under way."""
        from anaphora.store.db import notes as table

        self._sealer.check()
        rows = table.take_turns(write, self._sealer, conversation_id, index)
        gone = [{**row, "identity_key": _identity_key(row)} for row in rows]
        table.put_forgotten(write, self._sealer, gone)
        return len(rows)

    def note_conversation(self, note: ConversationNote) -> None:
        """Write where a conversation came from, in place of what was noted before."""
        from anaphora.store.db import notes as table

        with self._truth.write(self.namespace) as write:
            self._sealer.check()
            table.put_conversation(
                write,
                self._sealer,
                {
                    "conversation_id": note.conversation_id,
                    "source": note.source,
                    "source_key": note.source_key,
                    "branch_of": note.branch_of,
                    "branch_at": note.branch_at,
                },
            )

    def conversation_notes(self) -> dict[str, ConversationNote]:
        """Where every noted conversation came from, by conversation id, deleted ones too."""
        notes = [self._conversation(row) for row in self._rows(_CONVERSATIONS)]
        return {note.conversation_id: note for note in notes}

    def version(self) -> int:
        """A number that grows with every write to the namespace; 0 before the first."""
        return self._truth.version(self.namespace)

    def changed_since(self, version: int) -> frozenset[str]:
        """The conversations whose notes were written, or forgotten, after `version`."""
        found, namespace = self._sealer.found, self.namespace
        rows = self._rows(_CHANGED, since=version)
        return frozenset(found("conversation_id", namespace, row[0]) for row in rows)

    def places_since(self, version: int) -> dict[str, int]:
        """Of `changed_since`, the lowest place of a turn whose note changed, by conversation."""
        found, namespace = self._sealer.found, self.namespace
        rows = self._rows(_PLACES, since=version)
        return {found("conversation_id", namespace, row[0]): int(row[1]) for row in rows}

    def _notes(self, statement: str, **parameters: str | int) -> list[TurnNote]:
        return [self._note(row) for row in self._rows(statement, **parameters)]

    def _rows(self, statement: str, **parameters: str | int) -> list[tuple[Any, ...]]:
        self._sealer.check()
        return self._truth.rows(statement, {"namespace": self.namespace, **parameters})

    def _lookup(self, column: str, value: str) -> str:
        return self._sealer.lookup(column, self.namespace, value)

    def _note(self, row: tuple[Any, ...]) -> TurnNote:
        stored = dict(zip(_NOTE_COLUMNS, row, strict=False), namespace=self.namespace)
        forgotten = bool(stored["forgotten"])
        # What the other table has a column for says nothing here.
        for name in ("turn_hash", "speaker") if forgotten else ("identity_key",):
            del stored[name]
        opened = self._sealer.open_row("forgotten_turn" if forgotten else "turn_note", stored)
        return TurnNote(
            opened["conversation_id"],
            opened["position"],
            opened.get("turn_hash") or "",
            opened.get("speaker"),
            opened["source"],
            opened["source_key"],
            opened["message_key"],
            forgotten,
        )

    def _conversation(self, row: tuple[Any, ...]) -> ConversationNote:
        stored = dict(zip(_CONVERSATION_COLUMNS, row, strict=True), namespace=self.namespace)
        opened = self._sealer.open_row("conversation_note", stored)
        return ConversationNote(*(opened[name] for name in _CONVERSATION_COLUMNS))


def notes_of(
    conversation_id: str, start: int, news: Sequence[NewTurn], turns: Sequence[Turn]
) -> list[TurnNote]:
    """Notes for the turns at `start` and on, made from `news`, that have something to note."""
    return [
        TurnNote(
            conversation_id,
            index,
            stored_turn_hash(turn.role, turn.text),
            speaker=new.speaker,
            source=new.source,
            source_key=new.source_key,
            message_key=new.message_key,
        )
        for index, (new, turn) in enumerate(zip(news, turns, strict=True), start)
        if new.speaker is not None or new.source is not None
    ]


def _turn_row(note: TurnNote) -> dict[str, Any]:
    chat = note.source is not None and note.source_key is not None
    return {
        "conversation_id": note.conversation_id,
        "position": note.index,
        "turn_hash": note.turn_hash,
        "speaker": note.speaker,
        "source": note.source,
        "source_key": note.source_key,
        "message_key": note.message_key,
        "chat_key": _digest("chat", note.source, note.source_key) if chat else None,
    }


def _identity_key(row: Mapping[str, Any]) -> str:
    """What a turn is forgotten by: its message, or its place when it has no source."""
    if row["chat_key"] is None or row["message_key"] is None:
        return _digest("place", row["conversation_id"], str(row["position"]))
    return _digest("message", row["source"], row["source_key"], row["message_key"])


def _digest(*parts: str | None) -> str:
    """32 hexadecimal digits that stand for these strings in this order, None as empty."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = (part or "").encode("utf-8", "surrogatepass")
        # Lengths first: without them ("ab", "c") and ("a", "bc") would be one.
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
