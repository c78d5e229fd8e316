"""Tokens of the server."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0006"
down_revision = "0005"


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, EscapedText, nullable=False) for name in names]


def _numbers(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=not needed) for name in names]


def upgrade() -> None:
    """Make the table of revision 0006."""
    op.create_table(
        "token",
        *_texts("namespace", "token_id"),
        *_numbers("seq"),
        *_texts("name", "token_hash", "scopes"),
        sa.Column("read_only", sa.Integer, nullable=False),
        *_numbers("created_at"),
        *_numbers("expires_at", "last_used", "revoked_at", needed=False),
        sa.PrimaryKeyConstraint("namespace", "token_id", name="token_pk"),
    )
    op.create_index("token_hash_of", "token", ["namespace", "token_hash"], unique=True)
