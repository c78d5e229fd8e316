"""Secrets in memories and notes that were stored before their form was known: found, taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.ingest.stored_secrets import StoredSecrets

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def holding_secrets(services: NamespaceServices, most: int | None = None) -> tuple[str, ...]:
    """The ids of memories and notes that hold what is taken out of new ones today.

    `most`: of at most so many characters of each, the oldest first.
    """
    return tuple(one for some in _of(services) for one in some.holding(most))


def redact_stored(services: NamespaceServices) -> tuple[str, ...]:
    """Take it out; when this returns, the words have left truth, its log and the index.

    The ids that changed. Raises StoreError and its kinds.
    """
    memories, notes = (some.redact() for some in _of(services))
    if memories:
        services.memories.purge()
        services.remember.fill_vectors()
    if notes:
        services.observation_index.purge()
        services.sections.purge()
        services.note_taking.fill_vectors()
    if memories or notes:
        services.truth.scrub()
        services.container.on_removal(services)
    return (*memories, *notes)


def _of(services: NamespaceServices) -> tuple[StoredSecrets, StoredSecrets]:
    return (
        StoredSecrets(services.records, on_gone=services.deep_forgetting.memories_gone),
        StoredSecrets(services.observations, on_gone=None),
    )
