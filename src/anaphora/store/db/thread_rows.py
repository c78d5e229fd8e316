"""How conversations in the database change: the statements of a write transaction.

In: a `Write` and plain values. Out: changed rows of `thread` and `turn`, numbered, sealed where
the home is. It decides nothing: what a change means is told by `anaphora.store.threads.sql_store`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, and_, delete, select, update
from sqlalchemy.sql.elements import ColumnElement

from anaphora.store.crypto.columns import Sealer, open_rows
from anaphora.store.db.engine import Write
from anaphora.store.db.heads import insert_into
from anaphora.store.db.schema import thread, turn
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.gojson import read_time, sound_time
from anaphora.values.conversations import Turn

_TURN_COLUMNS = ("conversation_id", "position", "role", "text", "ts_text", "intent_id")


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """What is known of a conversation beside its turns; see `schema.thread` for the fields."""

    turn_count: int
    opening: int | None
    title: str
    updated_text: str
    stamp: int
    deleted: bool = False


def head_of(write: Write, sealer: Sealer, conversation_id: str) -> ThreadHead | None:
    """The head of a conversation that is there; None of one that was deleted or never was."""
    here = _here(thread, write, sealer, conversation_id)
    row = write.connection.execute(select(thread).where(here)).mappings().one_or_none()
    if row is None or row["deleted"]:
        return None
    opened = sealer.open_row("thread", dict(row))
    return ThreadHead(
        opened["turn_count"],
        opened["opening"],
        opened["title"],
        sound_time(opened["updated_text"]),
        opened["stamp"],
    )


def put_head(write: Write, sealer: Sealer, conversation_id: str, head: ThreadHead) -> None:
    """Write a head, in place of the one that is there, with the next number."""
    row = {
        "namespace": write.namespace,
        "conversation_id": conversation_id,
        "seq": write.take()[0],
        "stamp": head.stamp,
        "turn_count": head.turn_count,
        "opening": head.opening,
        "deleted": int(head.deleted),
        "title": head.title,
        "updated_text": head.updated_text,
    }
    insert = insert_into(write.connection, thread)
    others = {name: insert.excluded[name] for name in row if name not in thread.primary_key.columns}
    keys = [column.name for column in thread.primary_key.columns]
    statement = insert.on_conflict_do_update(index_elements=keys, set_=others)
    write.connection.execute(statement, sealer.seal_row("thread", row))


def turns_of(write: Write, sealer: Sealer, conversation_id: str) -> list[Turn]:
    """All turns of a conversation, oldest first."""
    here = _here(turn, write, sealer, conversation_id)
    columns = [turn.c[name] for name in _TURN_COLUMNS]
    found = write.connection.execute(select(*columns).where(here).order_by(turn.c.position))
    rows = open_rows(sealer, "turn", _TURN_COLUMNS, write.namespace, [tuple(r) for r in found])
    return [
        Turn(role, text, read_time(sound_time(ts_text)), sound_time(ts_text), intent_id)
        for _, _, role, text, ts_text, intent_id in rows
    ]


def add_turns(
    write: Write,
    sealer: Sealer,
    conversation_id: str,
    placed: Iterable[tuple[int, Turn]],
    stamp: int,
) -> None:
    """Write turns at places that are free."""
    rows = [_row(write, conversation_id, place, one) | {"stamp": stamp} for place, one in placed]
    if rows:
        numbered = zip(rows, write.take(len(rows)), strict=True)
        stored = [sealer.seal_row("turn", row | {"seq": seq}) for row, seq in numbered]
        # A server's driver opens a pipeline for a list, even of one.
        write.connection.execute(turn.insert(), stored if len(stored) > 1 else stored[0])


def change_turns(
    write: Write,
    sealer: Sealer,
    conversation_id: str,
    changed: Sequence[tuple[int, Turn]],
    stamp: int,
) -> None:
    """Replace turns at places that are taken; all turns of the conversation get the stamp."""
    here = _here(turn, write, sealer, conversation_id)
    places = [place for place, _ in changed]
    for place in places:
        write.connection.execute(delete(turn).where(here, turn.c.position == place))
    add_turns(write, sealer, conversation_id, changed, stamp)
    write.connection.execute(update(turn).where(here).values(stamp=stamp))


def drop_turns(write: Write, sealer: Sealer, conversation_id: str) -> None:
    """Delete every turn of a conversation."""
    write.connection.execute(delete(turn).where(_here(turn, write, sealer, conversation_id)))


def _here(table: Table, write: Write, sealer: Sealer, conversation_id: str) -> ColumnElement[bool]:
    stored = sealer.lookup("conversation_id", write.namespace, conversation_id)
    return and_(table.c.namespace == write.namespace, table.c.conversation_id == stored)


def _row(write: Write, conversation_id: str, place: int, one: Turn) -> dict[str, Any]:
    return {
        "namespace": write.namespace,
        "conversation_id": conversation_id,
        "position": place,
        "role": one.role,
        "text": one.text,
        "ts_text": one.ts_text,
        "intent_id": one.intent_id,
        "turn_hash": stored_turn_hash(one.role, one.text),
    }
