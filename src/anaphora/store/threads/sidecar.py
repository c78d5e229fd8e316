"""What a thread file has no place for: speakers, sources, import identities, branches.

A note carries the hash of its turn: one whose turn is not in the thread (a crash came between the
two writes, or another program rewrote the file) is void, and only the reader of the thread can
tell. It never holds a turn's text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from anaphora.store.db.table import Table
from anaphora.store.db.tables import CONVERSATION_NOTE, FORGOTTEN_TURN, SESSION_PLACE, TURN_NOTE
from anaphora.store.hashing import digest, stored_turn_hash
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import NamespaceReader, NamespaceTransaction, Row
from anaphora.store.verdicts import VerdictTransaction
from anaphora.values.conversations import NewTurn, Turn
from anaphora.values.sessions import SessionPlace

if TYPE_CHECKING:
    from anaphora.store.db.engine import Write

_COLUMNS = (*TURN_NOTE.names, "identity_key")


def _notes_in(table: Table) -> str:
    column_list = (name if name in table.names else f"NULL AS {name}" for name in _COLUMNS)
    forgotten_flag = int(table is FORGOTTEN_TURN)
    return (
        f"SELECT {', '.join(column_list)}, {forgotten_flag} AS forgotten FROM {table.name} "  # noqa: S608
        "WHERE namespace = :namespace AND {where} "
    )


# One statement, so that a note that is forgotten meanwhile is in one of both tables. Where a place
# is in both, the living note comes last and wins; so does the later of two equals.
_NOTES = " UNION ALL ".join(map(_notes_in, (TURN_NOTE, FORGOTTEN_TURN))) + (
    "ORDER BY forgotten DESC, seq"
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

DELETED_THREAD = "thread"
"""The kind of tombstone that the deletion of a conversation leaves."""
_DELETED = (
    "SELECT owner_id FROM tombstone WHERE namespace = :namespace AND seq > :since AND kind = :kind"
)


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


def _chat_key(note: TurnNote) -> str | None:
    is_imported = note.source is not None and note.source_key is not None
    return _digest("chat", note.source, note.source_key) if is_imported else None


_TURNS = RowMapping(
    TURN_NOTE, TurnNote, named={"index": "position"}, written={"chat_key": _chat_key}
)
_FORGOTTEN = RowMapping(FORGOTTEN_TURN, TurnNote, named={"index": "position"})
_CONVERSATIONS = RowMapping(CONVERSATION_NOTE, ConversationNote)
_PLACES_CHANGED = "SELECT COALESCE(MAX(seq), 0) FROM session_place WHERE namespace = :namespace"


@dataclass(frozen=True, slots=True)
class _PlaceNote:
    """The place of a session, as its row has it."""

    conversation_id: str
    client: str
    directory: str
    repository: str
    branch: str

    @property
    def place(self) -> SessionPlace:
        """What of it is not the key."""
        return SessionPlace(self.client, self.directory, self.repository, self.branch)


_SESSIONS = RowMapping(SESSION_PLACE, _PlaceNote)


class NoteTransaction(NamespaceTransaction):
    """What one write transaction does to notes."""

    def put(self, notes: Iterable[TurnNote]) -> None:
        """Write notes, in place of the ones at the same places; what they tell is not forgotten."""
        # Two notes for one place in one call: the last one counts, as in two calls.
        notes_by_turn = {(note.conversation_id, note.index): note for note in notes}
        rows = [_TURNS.row(note) for note in notes_by_turn.values()]
        keys = [self._lookup("identity_key", _identity_key(row)) for row in rows]
        self._delete(FORGOTTEN_TURN, identity_key=keys)
        self._replace(TURN_NOTE, rows)

    def forget(self, conversation_id: str, index: int | None) -> int:
        """Keep identity and place alone of a turn, or of all turns; how many had notes."""
        VerdictTransaction(self.write, self.sealer).drop_turns(conversation_id, index)
        of_turn: Row = {"conversation_id": self._lookup("conversation_id", conversation_id)}
        if index is not None:
            of_turn["position"] = index
        rows = self.find_rows(TURN_NOTE, **of_turn)
        if rows:
            self._delete(TURN_NOTE, **of_turn)
        rows.sort(key=lambda row: int(row["position"]))
        forgotten_rows = [row | {"identity_key": _identity_key(row)} for row in rows]
        names = FORGOTTEN_TURN.names
        self._replace(
            FORGOTTEN_TURN, [{name: row[name] for name in names} for row in forgotten_rows]
        )
        return len(rows)

    def forget_messages(self, conversation_id: str) -> None:
        """Drop all notes of a conversation; the identities of messages stay as forgotten."""
        self.forget(conversation_id, None)
        stored_id = self._lookup("conversation_id", conversation_id)
        rows = self.find_rows(FORGOTTEN_TURN, conversation_id=stored_id)
        unnamed_positions = [row["position"] for row in rows if row["source"] is None]
        self._delete(FORGOTTEN_TURN, conversation_id=stored_id, position=unnamed_positions)

    def bury_thread(self, key: str) -> None:
        """Leave the tombstone of a conversation."""
        self._bury(DELETED_THREAD, [key])

    def put_place(self, conversation_id: str, place: SessionPlace) -> None:
        """Write where a session took place, in place of what was known."""
        self._replace(SESSION_PLACE, [_SESSIONS.row(_PlaceNote(conversation_id, **asdict(place)))])

    def drop_place(self, conversation_id: str) -> int:
        """Forget where a session took place; how many rows that were."""
        stored_id = self._lookup("conversation_id", conversation_id)
        return self._delete(SESSION_PLACE, conversation_id=stored_id)

    def put_conversation(self, note: ConversationNote) -> None:
        """Write the note of a conversation, in place of an earlier one."""
        self._replace(CONVERSATION_NOTE, [_CONVERSATIONS.row(note)])


class Sidecar(NamespaceReader):
    """The notes of one namespace. All reads see every write acknowledged by any process."""

    @contextmanager
    def _change(self, write: Write | None = None) -> Iterator[NoteTransaction]:
        """A write to this namespace that is under way, or one of its own."""
        if write is not None:
            yield NoteTransaction(write, self.sealer)
            return
        with self._write() as write_of_its_own:
            yield NoteTransaction(write_of_its_own, self.sealer)

    def note_turns(self, notes: Iterable[TurnNote], write: Write | None = None) -> None:
        """Write notes, all or none, in `write` where that is under way.

        A note replaces the one at its place; a message that was forgotten and is noted again is
        no longer forgotten. `StoreError` and its kinds when the database cannot be written.
        """
        note_list = list(notes)
        if note_list:
            with self._change(write) as work:
                work.put(note_list)

    def turn_notes(self, conversation_id: str, start: int = 0) -> dict[int, TurnNote]:
        """The notes of a conversation from turn `start` on, by index, forgotten ones among them."""
        stored_id = self._lookup("conversation_id", conversation_id)
        notes = self._notes(_NOTES_AT, conversation_id=stored_id, start=start)
        by_index = {note.index: note for note in notes}
        return dict(sorted(by_index.items()))

    def known(self, source: str, source_key: str) -> dict[str, TurnNote]:
        """Every message of a source chat that is or was here, by message key.

        A message with several notes is given by its newest living one; `forgotten` is set on one
        that was deleted or redacted everywhere, so that an importer leaves it out.
        """
        chat_key = self._lookup("chat_key", _digest("chat", source, source_key))
        notes = self._notes(_NOTES_OF_CHAT, chat_key=chat_key)
        return {note.message_key: note for note in notes if note.message_key is not None}

    def messages_since(self, source: str, version: int) -> Iterator[tuple[str, str, str, int]]:
        """Chat, key, hash and index of every message of a source noted or forgotten after that.

        The hash of a forgotten one is "". `version` is that of the namespace.
        """
        for table in (TURN_NOTE, FORGOTTEN_TURN):
            statement = table.select() + "AND source = :source AND seq > :since ORDER BY seq"
            columns = {name: column for column, name in enumerate(table.names)}
            of_hash = columns.get("turn_hash")
            for row in self._found(table, statement, source=source, since=version):
                chat, key = row[columns["source_key"]], row[columns["message_key"]]
                if chat is not None and key is not None:
                    words = "" if of_hash is None else row[of_hash]
                    yield chat, key, words, int(row[columns["position"]])

    def forget(
        self, conversation_id: str, index: int | None = None, write: Write | None = None
    ) -> int:
        """Drop what is known of a turn, or of all turns when `index` is None; return how many.

        Speaker and hash go for good. The identity stays as forgotten, so that importing the same
        source again does not bring the turn back. The note about the conversation stays.
        """
        with self._change(write) as work:
            return work.forget(conversation_id, index)

    def replace_notes(
        self, conversation_id: str, notes: Iterable[TurnNote], write: Write | None = None
    ) -> None:
        """Write these notes in place of all that were there; messages without one are forgotten."""
        with self._change(write) as work:
            work.forget_messages(conversation_id)
            work.put(notes)

    def note_deletion(self, conversation_id: str, write: Write | None = None) -> None:
        """Note that a conversation is deleted, which a missing file does not tell."""
        with self._change(write) as work:
            work.bury_thread(self.deletion_key(conversation_id))

    def deleted_since(self, version: int) -> frozenset[str]:
        """What `deletion_key` gives for each conversation that was deleted after `version`."""
        return frozenset(row[0] for row in self._rows(_DELETED, since=version, kind=DELETED_THREAD))

    def deletion_key(self, conversation_id: str) -> str:
        """What a conversation that was deleted is known by, which does not tell its id."""
        return self._lookup("conversation_id", digest("deleted", conversation_id))

    def note_conversation(self, note: ConversationNote) -> None:
        """Write where a conversation came from, in place of what was noted before."""
        with self._change() as work:
            work.put_conversation(note)

    def conversation_notes(self) -> dict[str, ConversationNote]:
        """Where every noted conversation came from, by conversation id, deleted ones too."""
        rows = self._found(CONVERSATION_NOTE, CONVERSATION_NOTE.select())
        return {row.conversation_id: row for row in map(_CONVERSATIONS.value, rows)}

    def note_place(self, conversation_id: str, place: SessionPlace) -> None:
        """Write where a session took place, in place of what was known of it."""
        with self._change() as work:
            work.put_place(conversation_id, place)

    def forget_place(self, conversation_id: str) -> None:
        """Drop where a session took place."""
        if conversation_id in self.places():
            with self._change() as work:
                work.drop_place(conversation_id)

    def places(self) -> dict[str, SessionPlace]:
        """Where each session took place, by conversation id."""
        rows = self._found(SESSION_PLACE, SESSION_PLACE.select())
        return {note.conversation_id: note.place for note in map(_SESSIONS.value, rows)}

    def places_version(self) -> int:
        """A number that rises whenever a place is written."""
        rows = self._rows(_PLACES_CHANGED)
        return int(rows[0][0]) if rows else 0

    def changed_since(self, version: int) -> frozenset[str]:
        """The conversations with notes that were written, or forgotten, after `version`."""
        open_id, namespace = self.sealer.found, self.namespace
        rows = self._rows(_CHANGED, since=version)
        return frozenset(open_id("conversation_id", namespace, row[0]) for row in rows)

    def places_since(self, version: int) -> dict[str, int]:
        """The lowest position of a turn with a changed note, by conversation of `changed_since`."""
        open_id, namespace = self.sealer.found, self.namespace
        rows = self._rows(_PLACES, since=version)
        return {open_id("conversation_id", namespace, row[0]): int(row[1]) for row in rows}

    def _notes(self, statement: str, **parameters: str | int) -> Iterator[TurnNote]:
        for row in self._rows(statement, **parameters):
            of = dict(zip((*_COLUMNS, "forgotten"), row, strict=True))
            mapping = _FORGOTTEN if of["forgotten"] else _TURNS
            cells = tuple(of[name] for name in mapping.columns)
            (opened_row,) = self._opened(mapping.table, [cells])
            missing = {"turn_hash": "", "forgotten": True} if of["forgotten"] else {}
            yield mapping.value(opened_row, **missing)


def notes_of(
    conversation_id: str, start: int, news: Sequence[NewTurn], turns: Sequence[Turn]
) -> list[TurnNote]:
    """Notes for the turns at `start` and on, made from `news`, that have something to note."""
    return [
        TurnNote(
            conversation_id,
            index,
            stored_turn_hash(turn.role, turn.text),
            speaker=new_turn.speaker,
            source=new_turn.source,
            source_key=new_turn.source_key,
            message_key=new_turn.message_key,
        )
        for index, (new_turn, turn) in enumerate(zip(news, turns, strict=True), start)
        if new_turn.speaker is not None or new_turn.source is not None
    ]


def _identity_key(row: Row) -> str:
    """What a turn is forgotten by: its message, or its place when it has no source."""
    if row["chat_key"] is None or row["message_key"] is None:
        return _digest("place", row["conversation_id"], str(row["position"]))
    return _digest("message", row["source"], row["source_key"], row["message_key"])


def _digest(*parts: str | None) -> str:
    """32 hexadecimal digits that stand for these strings in this order, None as empty."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded_part = (part or "").encode("utf-8", "surrogatepass")
        # Lengths first: without them ("ab", "c") and ("a", "bc") would be one.
        digest.update(len(encoded_part).to_bytes(8, "big") + encoded_part)
    return digest.hexdigest()
