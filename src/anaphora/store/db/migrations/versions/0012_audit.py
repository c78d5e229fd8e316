"""The audit trail: its entries, its key, and its tip in the head of a namespace."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Make the tables of revision 0012."""
    op.add_column("head", sa.Column("audit", EscapedText))
    op.create_table(
        "audit_entry",
        sa.Column("namespace", EscapedText, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("body", EscapedText, nullable=False),
        sa.Column("link", EscapedText, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "number", name="audit_entry_pk"),
    )
    texts = ("namespace", "name", "value")
    op.create_table(
        "audit_state",
        *(sa.Column(name, EscapedText, nullable=False) for name in texts),
        sa.PrimaryKeyConstraint("namespace", "name", name="audit_state_pk"),
    )
