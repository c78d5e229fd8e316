"""Conversations in the database: threads and their turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables of revision 0003."""
    op.create_table(
        "thread",
        sa.Column("namespace", EscapedText, nullable=False),
        sa.Column("conversation_id", EscapedText, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("stamp", sa.BigInteger, nullable=False),
        sa.Column("turn_count", sa.Integer, nullable=False),
        sa.Column("opening", sa.Integer),
        sa.Column("deleted", sa.Integer, nullable=False),
        sa.Column("title", EscapedText, nullable=False),
        sa.Column("updated_text", EscapedText, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", name="thread_pk"),
    )
    op.create_index("thread_seq", "thread", ["namespace", "seq"], unique=True)
    op.create_table(
        "turn",
        sa.Column("namespace", EscapedText, nullable=False),
        sa.Column("conversation_id", EscapedText, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("stamp", sa.BigInteger, nullable=False),
        sa.Column("role", EscapedText, nullable=False),
        sa.Column("text", EscapedText, nullable=False),
        sa.Column("ts_text", EscapedText, nullable=False),
        sa.Column("intent_id", EscapedText, nullable=False),
        sa.Column("turn_hash", EscapedText, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", "position", name="turn_pk"),
    )
