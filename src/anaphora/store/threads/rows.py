"""How conversations in the database, and notes about turns, change: one write transaction.

It decides nothing: what a change means is told by `sql_store`, what a note means by `sidecar`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anaphora.store.db.tables import (
    CONVERSATION_NOTE,
    FORGOTTEN_TURN,
    THREAD,
    TURN,
    TURN_NOTE,
    Table,
)
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import NamespaceTransaction, Row
from anaphora.store.threads.gojson import read_time, sound_time
from anaphora.values.conversations import Turn


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """What is known of a conversation beside its turns; see `db.tables.THREAD` for the fields."""

    turn_count: int
    opening: int | None
    title: str
    updated_text: str
    stamp: int
    deleted: bool = False


_HEADS = RowMapping(THREAD, ThreadHead)


class ThreadTransaction(NamespaceTransaction):
    """What one write transaction does to conversations."""

    def head(self, conversation_id: str) -> ThreadHead | None:
        """The head of a conversation that is there; None of one that was deleted or never was."""
        for row in self._found_rows(THREAD, **self._here(conversation_id)):
            if not row["deleted"]:
                updated = sound_time(row["updated_text"])
                return ThreadHead(
                    row["turn_count"], row["opening"], row["title"], updated, row["stamp"]
                )
        return None

    def put_head(self, conversation_id: str, head: ThreadHead) -> None:
        """Write a head, in place of the one that is there, with the next number."""
        self._replace(THREAD, [_HEADS.row(head, conversation_id=conversation_id)])

    def turns(self, conversation_id: str) -> list[Turn]:
        """All turns of a conversation, oldest first."""
        rows = self._found_rows(TURN, **self._here(conversation_id))
        return [
            Turn(
                row["role"],
                row["text"],
                read_time(sound_time(row["ts_text"])),
                sound_time(row["ts_text"]),
                row["intent_id"],
            )
            for row in sorted(rows, key=lambda row: int(row["position"]))
        ]

    def add_turns(
        self, conversation_id: str, placed: Iterable[tuple[int, Turn]], stamp: int
    ) -> None:
        """Write turns at places that are free."""
        rows = [
            {
                "conversation_id": conversation_id,
                "position": place,
                "role": one.role,
                "text": one.text,
                "ts_text": one.ts_text,
                "intent_id": one.intent_id,
                "turn_hash": stored_turn_hash(one.role, one.text),
                "stamp": stamp,
            }
            for place, one in placed
        ]
        self._insert(TURN, rows)

    def change_turns(
        self, conversation_id: str, changed: Sequence[tuple[int, Turn]], stamp: int
    ) -> None:
        """Replace turns at places that are taken; all turns of the conversation get the stamp."""
        here = self._here(conversation_id)
        self._delete(TURN, **here, position=[place for place, _ in changed])
        self.add_turns(conversation_id, changed, stamp)
        self._set(TURN, {"stamp": stamp}, **here)

    def drop_turns(self, conversation_id: str) -> None:
        """Delete every turn of a conversation."""
        self._delete(TURN, **self._here(conversation_id))

    def _here(self, conversation_id: str) -> Row:
        return {"conversation_id": self._lookup("conversation_id", conversation_id)}


class NoteTransaction(NamespaceTransaction):
    """What one write transaction does to notes. Columns that a table does not have are left out."""

    def put_turns(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write notes of turns, in place of the ones at the same places."""
        self._put(TURN_NOTE, rows)

    def put_forgotten(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Remember that these turns were forgotten: identity and place alone."""
        self._put(FORGOTTEN_TURN, rows)

    def put_conversation(self, row: Mapping[str, Any]) -> None:
        """Write the note of a conversation, in place of an earlier one."""
        self._put(CONVERSATION_NOTE, [row])

    def drop_forgotten(self, identity_keys: Sequence[str]) -> None:
        """Let these identities no longer count as forgotten."""
        keys = [self._lookup("identity_key", key) for key in identity_keys]
        self._delete(FORGOTTEN_TURN, identity_key=keys)

    def take_turns(self, conversation_id: str, position: int | None) -> list[Row]:
        """Remove the notes of a conversation, or of one turn of it, and return their rows."""
        here: Row = {"conversation_id": self._lookup("conversation_id", conversation_id)}
        if position is not None:
            here["position"] = position
        rows = self._found_rows(TURN_NOTE, **here)
        if rows:
            self._delete(TURN_NOTE, **here)
        return sorted(rows, key=lambda row: int(row["position"]))

    def _put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        wanted = [name for name in table.names if name != "seq"]
        self._replace(table, [{name: row[name] for name in wanted} for row in rows])
