"""The first schema: the head counter and the notes beside conversation threads."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0001"
down_revision = None


def _text(name: str, *, needed: bool = False) -> sa.Column[str]:
    return sa.Column(name, EscapedText, nullable=not needed)


def upgrade() -> None:
    """Make the tables of revision 0001."""
    op.create_table(
        "head",
        _text("namespace", needed=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("namespace", name="head_pk"),
    )
    op.create_table(
        "conversation_note",
        _text("namespace", needed=True),
        _text("conversation_id", needed=True),
        _text("source"),
        _text("source_key"),
        _text("branch_of"),
        sa.Column("branch_at", sa.Integer),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", name="conversation_note_pk"),
    )
    op.create_index("conversation_note_seq", "conversation_note", ["namespace", "seq"])
    op.create_table(
        "turn_note",
        _text("namespace", needed=True),
        _text("conversation_id", needed=True),
        sa.Column("position", sa.Integer, nullable=False),
        _text("turn_hash", needed=True),
        _text("speaker"),
        *_identity(),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", "position", name="turn_note_pk"),
    )
    op.create_index("turn_note_chat", "turn_note", ["namespace", "chat_key"])
    op.create_index("turn_note_seq", "turn_note", ["namespace", "seq"])
    op.create_table(
        "forgotten_turn",
        _text("namespace", needed=True),
        _text("identity_key", needed=True),
        _text("conversation_id", needed=True),
        sa.Column("position", sa.Integer, nullable=False),
        *_identity(),
        sa.PrimaryKeyConstraint("namespace", "identity_key", name="forgotten_turn_pk"),
    )
    place = ["namespace", "conversation_id", "position"]
    op.create_index("forgotten_turn_place", "forgotten_turn", place)
    op.create_index("forgotten_turn_chat", "forgotten_turn", ["namespace", "chat_key"])
    op.create_index("forgotten_turn_seq", "forgotten_turn", ["namespace", "seq"])


def _identity() -> list[sa.Column[str] | sa.Column[int]]:
    return [
        _text("source"),
        _text("source_key"),
        _text("message_key"),
        _text("chat_key"),
        sa.Column("seq", sa.BigInteger, nullable=False),
    ]
