"""How notes about turns and conversations change: what a write transaction does to their tables.

It decides nothing: what a note means is told by `sidecar`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anaphora.store.db.tables import CONVERSATION_NOTE, FORGOTTEN_TURN, TURN_NOTE, Table
from anaphora.store.namespace import NamespaceTransaction, Row


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
