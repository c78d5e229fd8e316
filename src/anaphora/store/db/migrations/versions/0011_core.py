"""By what the memories of the core block are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_RULE = 1


def upgrade() -> None:
    """Add the column of revision 0011, and mark the rules that are there."""
    op.add_column("record", sa.Column("core", sa.Integer))
    record = sa.table("record", sa.column("core"), sa.column("type"))
    op.execute(sa.update(record).where(record.c.type == "procedural").values(core=_RULE))
    op.create_index("record_core", "record", ["namespace", "core", "seq"])
