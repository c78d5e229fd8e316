"""Forgetting that leaves a way back: what undoes it, and what ends it when its time is over."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from anaphora.errors import NotFound

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def erase_due(services: NamespaceServices) -> int:
    """Erase what was forgotten with a way back, and can no longer be had back; how many."""
    count = 0
    for job in services.jobs.list_due_erasures():
        # It may have gone with another one.
        with suppress(NotFound):
            count += services.forget_any(job["conversation_id"], None, soft=False).count
        services.jobs.remove(job)
    return count


def bring_back(services: NamespaceServices, record_id: str) -> tuple[str, ...]:
    """Undo a forgetting that left a way back, of this and what went with it. `NotFound`."""
    forgotten_records = services.forget.forget(record_id, dry_run=True)
    ids = (
        services.forget.undo(forgotten_records.ids)
        if forgotten_records.ids
        else services.upkeep.notes.bring_back(record_id)
    )
    ids = ids or services.documents.writing.bring_back(record_id)
    if not ids:
        raise NotFound("forgotten memory", record_id)
    services.jobs.cancel_erasures(frozenset(ids))
    return ids
