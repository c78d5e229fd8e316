"""How notes about turns and conversations change: the statements of a write transaction.

In: a `Write` and plain rows. Out: changed tables, each row with a sequence number of its own. It
decides nothing: what a note means is told by `anaphora.store.threads.sidecar`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table, and_, bindparam, delete, select

from anaphora.store.crypto.columns import Sealer
from anaphora.store.db.engine import Write
from anaphora.store.db.heads import insert_into
from anaphora.store.db.schema import conversation_note, forgotten_turn, turn_note

Row = Mapping[str, Any]


def put_turns(write: Write, sealer: Sealer, rows: Sequence[Row]) -> None:
    """Write notes of turns, in place of the ones at the same places."""
    _put(write, sealer, turn_note, rows)


def put_forgotten(write: Write, sealer: Sealer, rows: Sequence[Row]) -> None:
    """Remember that these turns were forgotten: identity and place alone."""
    _put(write, sealer, forgotten_turn, rows)


def put_conversation(write: Write, sealer: Sealer, row: Row) -> None:
    """Write the note of a conversation, in place of an earlier one."""
    _put(write, sealer, conversation_note, [row])


def drop_forgotten(write: Write, sealer: Sealer, identity_keys: Sequence[str]) -> None:
    """Let these identities no longer count as forgotten."""
    here = and_(
        forgotten_turn.c.namespace == write.namespace,
        forgotten_turn.c.identity_key == bindparam("gone"),
    )
    rows = [{"gone": sealer.lookup("identity_key", write.namespace, key)} for key in identity_keys]
    if rows:
        write.connection.execute(delete(forgotten_turn).where(here), _one_or_many(rows))


def take_turns(
    write: Write, sealer: Sealer, conversation_id: str, position: int | None
) -> list[dict[str, Any]]:
    """Remove the notes of a conversation, or of one turn of it, and return their rows."""
    stored_id = sealer.lookup("conversation_id", write.namespace, conversation_id)
    here = and_(turn_note.c.namespace == write.namespace, turn_note.c.conversation_id == stored_id)
    if position is not None:
        here = and_(here, turn_note.c.position == position)
    found = write.connection.execute(select(turn_note).where(here).order_by(turn_note.c.position))
    rows = [sealer.open_row("turn_note", dict(row)) for row in found.mappings()]
    if rows:
        write.connection.execute(delete(turn_note).where(here))
    return rows


def _put(write: Write, sealer: Sealer, table: Table, rows: Sequence[Row]) -> None:
    """Insert or replace rows by primary key; columns that `table` does not have are left out."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key.columns]
    insert = insert_into(write.connection, table)
    others = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in keys}
    statement = insert.on_conflict_do_update(index_elements=keys, set_=others)
    numbered = [
        _columns_of(table, row) | {"namespace": write.namespace, "seq": seq}
        for row, seq in zip(rows, write.take(len(rows)), strict=True)
    ]
    stored = [sealer.seal_row(table.name, row) for row in numbered]
    write.connection.execute(statement, _one_or_many(stored))


def _one_or_many(rows: list[dict[str, Any]]) -> list[dict[str, Any]] | dict[str, Any]:
    # A server's driver opens a pipeline for a list, even of one.
    return rows if len(rows) > 1 else rows[0]


def _columns_of(table: Table, row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in table.columns}
