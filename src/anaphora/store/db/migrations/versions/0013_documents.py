"""Documents: the bytes of their files; what is read out of them are records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table of revision 0013."""
    op.create_table(
        "document_file",
        sa.Column("namespace", EscapedText, nullable=False),
        sa.Column("record_id", EscapedText, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "record_id", "position", name="document_file_pk"),
        sa.ForeignKeyConstraint(
            ["namespace", "record_id"],
            ["record.namespace", "record.record_id"],
            name="document_file_of",
            ondelete="CASCADE",
        ),
    )
