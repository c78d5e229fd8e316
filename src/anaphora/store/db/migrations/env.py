"""Alembic's entry: runs the migrations on the connection that `migrate` hands over."""

from __future__ import annotations

from alembic import context

from anaphora.store.db.revision import REVISION_TABLE
from anaphora.store.db.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=REVISION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
