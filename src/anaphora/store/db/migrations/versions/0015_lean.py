"""Indexes of what few memories have leave the others out; events are kept in their key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from anaphora.store.db.schema import EscapedText

revision = "0015"
down_revision = "0014"

_FILLED = (
    ("record_core", ("core", "seq"), "core"),
    ("record_path", ("path_key",), "path_key"),
    ("record_parent", ("parent",), "parent"),
    ("record_supersedes", ("supersedes",), "supersedes"),
    ("record_superseded_by", ("superseded_by",), "superseded_by"),
    ("record_payload", ("seq",), "payload"),
)
_NEW = ("record_superseded_by", "record_payload")


def upgrade() -> None:
    """Bring indexes and the table of events to revision 0015."""
    for name, columns, filled in _FILLED:
        if name not in _NEW:
            op.drop_index(name, "record")
        where = sa.text(f"{filled} IS NOT NULL")
        op.create_index(
            name, "record", ["namespace", *columns], sqlite_where=where, postgresql_where=where
        )
    if op.get_bind().dialect.name == "sqlite":
        _events_by_key()


def _events_by_key() -> None:
    op.rename_table("record_event", "record_event_0014")
    names = ("namespace", "record_id", "seq", "kind", "at", "tags", "origin")
    made = op.create_table(
        "record_event",
        sa.Column("namespace", EscapedText, nullable=False),
        sa.Column("record_id", EscapedText, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("kind", EscapedText, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("tags", EscapedText),
        sa.Column("origin", EscapedText),
        sa.PrimaryKeyConstraint("namespace", "record_id", "seq", name="record_event_pk"),
        sa.ForeignKeyConstraint(
            ["namespace", "record_id"],
            ["record.namespace", "record.record_id"],
            name="record_event_of",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    # Plain columns: what is escaped stays as it is.
    old = sa.table("record_event_0014", *map(sa.column, names))
    chosen = sa.select(*old.c).order_by(old.c.namespace, old.c.record_id, old.c.seq)
    op.execute(made.insert().from_select(names, chosen))
    op.drop_table("record_event_0014")
