"""Removes forgotten content from the outbox of a synced namespace at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.features.sync.under_way import is_syncing
from anaphora.store.table_rows import TableRows

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def note_removal(services: NamespaceServices) -> None:
    """Remove forgotten content from the changes that are stored for other devices.

    If another process is syncing, that process does it before it ends.
    """
    if is_syncing():
        return
    rows = TableRows(services.truth, services.namespace, services.sealing.rows)
    if not rows.find("sync_state", {"name": "member"}):
        return
    from anaphora.features.sync.manager import Sync

    Sync(services).note_removal()
