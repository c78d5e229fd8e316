"""What is forgotten in a namespace that is synced leaves what sync keeps of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.store.table_rows import TableRows
from anaphora.sync.under_way import is_syncing

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def note_removal(services: NamespaceServices) -> None:
    """Let words that were forgotten leave the changes that are kept for other devices.

    Where another process syncs just now, it does that before it ends.
    """
    if is_syncing():
        return
    rows = TableRows(services.truth, services.namespace, services.sealing.rows)
    if not rows.find("sync_state", {"name": "member"}):
        return
    from anaphora.sync.manager import Sync

    Sync(services).note_removal()
