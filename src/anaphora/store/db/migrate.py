"""Alembic, run inside a transaction that is already open. Imported only for an older home."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from anaphora.store.db.revision import REVISION

# Alembic keeps the migration under way in its module: two homes must not migrate at one moment.
_one_at_a_time = threading.Lock()


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's settings: the packaged migrations, run on `connection`."""
    config = Config()
    # Alembic interpolates its options: a percent sign in a path must be doubled.
    folder = str(Path(__file__).parent / "migrations").replace("%", "%%")
    config.set_main_option("script_location", folder)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, to: str = REVISION) -> None:
    """Bring the database of `connection` to revision `to`, within the caller's transaction."""
    with _one_at_a_time:
        command.upgrade(configuration(connection), to)
