"""Forgetting in a whole namespace: records of every feature, softly or for good, and undoing it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anaphora.errors import NotFound

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices
    from anaphora.values.memories import Forgotten


def forget_any(
    services: NamespaceServices,
    record_id: str | None,
    filters: Mapping[str, Any] | None,
    *,
    soft: bool = False,
    clean: bool = True,
    dry_run: bool = False,
) -> Forgotten:
    """Forget memories, or one record of a feature: their ids look alike; see `Memory.forget`."""
    forgotten_records = services.memory.eraser.forget(
        record_id, filters=filters, soft=soft, clean=clean, dry_run=dry_run
    )
    if dry_run and (forgotten_records.count or record_id is None):
        return forgotten_records
    if forgotten_records.count and not soft:
        services.jobs.cancel_erasures(frozenset(forgotten_records.ids))
        if not clean:
            services.container.clean_in_background()
            return forgotten_records
        # The words must leave the index's files too, before this returns.
        services.memory.index.purge()
        clean_due(services.container)
    # A memory that was softly forgotten before is still there.
    if not forgotten_records.count and record_id and not services.memory.records.many([record_id]):
        forgotten_records = _forget_of_feature(services, record_id, soft=soft, dry_run=dry_run)
    if forgotten_records.count and not soft and not dry_run:
        services.after_removal()
    return forgotten_records


def _forget_of_feature(
    services: NamespaceServices, record_id: str, *, soft: bool, dry_run: bool
) -> Forgotten:
    for feature in services.features:
        forgotten_records = feature.forget(record_id, soft=soft, dry_run=dry_run)
        if forgotten_records is not None:
            return forgotten_records
    raise NotFound("memory", record_id)


def clean_due(container: Container) -> bool:
    """Let the words leave the files of which a forgetting did not wait for that; whether they did.

    Those of an earlier process may lie in the index of any namespace.
    """

    def purge() -> None:
        for name in container.namespaces():
            services = container.own(name)
            services.memory.index.purge()
            services.after_removal()

    return container.truth.clean(purge)


def erase_due(services: NamespaceServices) -> int:
    """Erase what was forgotten with a way back, and can no longer be had back; how many."""
    count = 0
    for job in services.jobs.list_due_erasures():
        # It may have gone with another one.
        with suppress(NotFound):
            count += forget_any(services, job["conversation_id"], None, soft=False).count
        services.jobs.remove(job)
    return count


def bring_back(services: NamespaceServices, record_id: str) -> tuple[str, ...]:
    """Undo a forgetting that left a way back, of this and what went with it. `NotFound`."""
    forgotten_records = services.memory.eraser.forget(record_id, dry_run=True)
    ids: tuple[str, ...] = ()
    if forgotten_records.ids:
        ids = services.memory.eraser.undo(forgotten_records.ids)
    else:
        ids = next(filter(None, (one.restore(record_id) for one in services.features)), ())
    if not ids:
        raise NotFound("forgotten memory", record_id)
    services.jobs.cancel_erasures(frozenset(ids))
    return ids
