"""Devices that sign their entries, and checkpoints.

Logs of revision 0009 had no signatures and were never in a release: a namespace that synced then is
not synced any more (`sync init` begins anew); what it holds stays as it is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0010"
down_revision = "0009"


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, EscapedText, nullable=False) for name in names]


def upgrade() -> None:
    """Make the tables of revision 0010."""
    for name in ("sync_item", "sync_patch", "sync_hosted", "sync_hash", "sync_state"):
        op.execute(sa.delete(sa.table(name)))
    op.drop_table("sync_entry")
    op.create_table(
        "sync_entry",
        *_texts("namespace", "device"),
        sa.Column("number", sa.BigInteger, nullable=False),
        *_texts("snapshot_id", "state"),
        sa.Column("made", sa.BigInteger, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.PrimaryKeyConstraint("namespace", "device", "number", name="sync_entry_pk"),
    )
    op.create_index("sync_entry_state", "sync_entry", ["namespace", "state"])
    op.create_table(
        "sync_copy",
        *_texts("namespace", "item_key", "stamp", "device"),
        sa.Column("entry", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint(
            "namespace", "item_key", "stamp", "device", "entry", name="sync_copy_pk"
        ),
    )
    op.create_index("sync_copy_entry", "sync_copy", ["namespace", "device", "entry"])
