"""Finds and removes secrets in records stored before their format was known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.ingest.stored_secrets import StoredSecrets

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


def holding_secrets(services: NamespaceServices, most: int | None = None) -> tuple[str, ...]:
    """The ids of memories and records of features with secrets that would be redacted in new ones.

    `most`: examine at most so many characters of each, the oldest first.
    """
    memories = StoredSecrets(services.memory.records, on_gone=services.forget_derived).holding(most)
    others = (feature.holding_secrets(most) for feature in services.features)
    return (*memories, *(record_id for ids in others for record_id in ids))


def count_kept_secrets(services: NamespaceServices) -> int:
    """How many memories hold a secret that their owner kept on purpose: they are left alone."""
    return StoredSecrets(services.memory.records, on_gone=None).kept()


def redact_stored(services: NamespaceServices) -> tuple[str, ...]:
    """Redact them; when this returns, no file of the database or the index contains them.

    Returns the changed ids. Raises StoreError and its kinds.
    """
    memories = StoredSecrets(services.memory.records, on_gone=services.forget_derived).redact()
    if memories:
        services.memory.index.purge()
        services.memory.writer.fill_vectors()
    others = tuple(
        record_id for feature in services.features for record_id in feature.redact_secrets()
    )
    if memories or others:
        services.truth.scrub()
        services.after_removal()
    return (*memories, *others)
