"""Finds and removes secrets in memories and notes stored before their format was known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.ingest.stored_secrets import StoredSecrets

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def holding_secrets(services: NamespaceServices, most: int | None = None) -> tuple[str, ...]:
    """The ids of memories and notes with secrets that would be redacted in new ones.

    `most`: examine at most so many characters of each, the oldest first.
    """
    return tuple(record_id for secrets in _of(services) for record_id in secrets.holding(most))


def redact_stored(services: NamespaceServices) -> tuple[str, ...]:
    """Redact them; when this returns, no file of the database or the index contains them.

    Returns the changed ids. Raises StoreError and its kinds.
    """
    memories, notes = (secrets.redact() for secrets in _of(services))
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
        StoredSecrets(services.records, on_gone=services.deep_forgetting.forget_memories),
        StoredSecrets(services.observations, on_gone=None),
    )
