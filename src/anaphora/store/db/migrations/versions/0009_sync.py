"""What devices exchange: changes of items, entries of logs, and how far each has come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0009"
down_revision = "0008"


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, EscapedText, nullable=False) for name in names]


def _key(table: str, *names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("namespace", *names, name=f"{table}_pk")


def upgrade() -> None:
    """Make the tables of revision 0009."""
    op.create_table(
        "sync_item",
        *_texts("namespace", "item_key", "group_key", "kind", "name"),
        sa.Column("dirty", sa.Integer, nullable=False),
        *_texts("seen"),
        _key("sync_item", "item_key"),
    )
    op.create_index("sync_item_group", "sync_item", ["namespace", "group_key"])
    op.create_index("sync_item_kind", "sync_item", ["namespace", "kind"])
    op.create_index("sync_item_dirty", "sync_item", ["namespace", "dirty"])
    op.create_table(
        "sync_patch",
        *_texts("namespace", "item_key", "stamp", "device"),
        sa.Column("entry", sa.BigInteger, nullable=False),
        sa.Column("applied", sa.Integer, nullable=False),
        *_texts("body"),
        _key("sync_patch", "item_key", "stamp"),
    )
    op.create_index("sync_patch_entry", "sync_patch", ["namespace", "device", "entry"])
    op.create_table(
        "sync_entry",
        *_texts("namespace", "device"),
        sa.Column("number", sa.BigInteger, nullable=False),
        *_texts("snapshot_id", "state"),
        sa.Column("body", sa.LargeBinary),
        _key("sync_entry", "device", "number"),
    )
    op.create_index("sync_entry_state", "sync_entry", ["namespace", "state"])
    op.create_table(
        "sync_hosted",
        *_texts("namespace", "project", "device"),
        sa.Column("number", sa.BigInteger, nullable=False),
        *_texts("snapshot_id"),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        _key("sync_hosted", "project", "device", "number"),
    )
    op.create_index("sync_hosted_seq", "sync_hosted", ["namespace", "project", "seq"])
    op.create_table(
        "sync_hash",
        *_texts("namespace", "project", "hash", "device"),
        sa.Column("number", sa.BigInteger, nullable=False),
        _key("sync_hash", "project", "hash", "device", "number"),
    )
    op.create_table("sync_state", *_texts("namespace", "name", "value"), _key("sync_state", "name"))
