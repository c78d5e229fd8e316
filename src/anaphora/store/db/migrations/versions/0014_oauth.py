"""Who connects by OAuth: clients that registered, and what they were granted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Make the table of revision 0014."""
    op.create_table(
        "oauth",
        *(
            sa.Column(name, EscapedText, nullable=False)
            for name in ("namespace", "kind", "item_id", "body")
        ),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "kind", "item_id", name="oauth_pk"),
    )
