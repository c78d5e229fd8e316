"""Lasting memories: records, how they came to be, links, deletions, vectors."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0002"
down_revision = "0001"


def _texts(*names: str, needed: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, EscapedText, nullable=not needed) for name in names]


def _numbers(*names: str, needed: bool = True) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger, nullable=not needed) for name in names]


def _record(name: str, column: str = "record_id") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["namespace", column],
        ["record.namespace", "record.record_id"],
        name=name,
        ondelete="CASCADE",
    )


def upgrade() -> None:
    """Make the tables of revision 0002."""
    op.create_table(
        "record",
        *_texts("namespace", "record_id", needed=True),
        *_numbers("seq"),
        *_texts("kind", "type", "text", needed=True),
        *_texts("path", "category", "tags", "payload", "origin"),
        *_texts("parent", "supersedes", "superseded_by"),
        *_numbers("created_at", "valid_from"),
        *_numbers("valid_until", "expires_at", "forgotten_at", needed=False),
        sa.Column("reinforced", sa.Integer, nullable=False),
        *_numbers("last_reinforced"),
        *_texts("same_key", needed=True),
        *_texts("path_key"),
        sa.PrimaryKeyConstraint("namespace", "record_id", name="record_pk"),
    )
    op.create_index("record_seq", "record", ["namespace", "seq"], unique=True)
    op.create_index("record_same", "record", ["namespace", "same_key"])
    op.create_index("record_path", "record", ["namespace", "path_key"])
    op.create_index("record_parent", "record", ["namespace", "parent"])
    op.create_index("record_supersedes", "record", ["namespace", "supersedes"])
    op.create_table(
        "record_event",
        *_texts("namespace", "record_id", needed=True),
        *_numbers("seq"),
        *_texts("kind", needed=True),
        *_numbers("at"),
        *_texts("tags", "origin"),
        sa.PrimaryKeyConstraint("namespace", "record_id", "seq", name="record_event_pk"),
        _record("record_event_of"),
    )
    op.create_table(
        "link",
        *_texts("namespace", "record_id", "other_id", "kind", needed=True),
        sa.Column("strength", sa.Float),
        *_numbers("seq"),
        sa.PrimaryKeyConstraint("namespace", "record_id", "other_id", "kind", name="link_pk"),
        _record("link_of"),
        _record("link_to", "other_id"),
    )
    op.create_index("link_other", "link", ["namespace", "other_id"])
    op.create_index("link_seq", "link", ["namespace", "seq"])
    op.create_table(
        "tombstone",
        *_texts("namespace", needed=True),
        *_numbers("seq"),
        *_texts("kind", "owner_id", needed=True),
        sa.PrimaryKeyConstraint("namespace", "seq", name="tombstone_pk"),
    )
    op.create_table(
        "vector",
        *_texts("namespace", "record_id", "embedder", needed=True),
        sa.Column("part", sa.Integer, nullable=False),
        *_texts("text_hash", needed=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
        *_numbers("seq"),
        sa.PrimaryKeyConstraint("namespace", "record_id", "embedder", "part", name="vector_pk"),
        _record("vector_of"),
    )
    op.create_index("vector_seq", "vector", ["namespace", "embedder", "seq"])
