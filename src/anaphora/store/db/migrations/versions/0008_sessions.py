"""Where sessions of coding agents took place."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table of revision 0008."""
    texts = ("namespace", "conversation_id", "client", "directory", "repository", "branch")
    op.create_table(
        "session_place",
        *(sa.Column(name, EscapedText, nullable=False) for name in texts),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "conversation_id", name="session_place_pk"),
    )
    op.create_index("session_place_seq", "session_place", ["namespace", "seq"])
