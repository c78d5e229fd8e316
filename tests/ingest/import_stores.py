"""An import into stores that a test has opened itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime

from anaphora import ImportReport, Source
from anaphora.features.importing.memories import ImportedMemoryWriter
from anaphora.features.importing.run import import_files
from anaphora.ingest.conversations import ConversationImport
from anaphora.store.records.store import Records
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.sidecar import Sidecar

_NUMBERS = itertools.count()


def import_into(
    sources: Iterable[Source], store: Conversations, sidecar: Sidecar, form: str | None = None
) -> ImportReport:
    """Import into a store of threads, and the memories of the same namespace."""
    return import_files(
        sources,
        ConversationImport(store, sidecar),
        ImportedMemoryWriter(
            Records(sidecar.truth, sidecar.namespace),
            clock=lambda: datetime(2026, 11, 1, tzinfo=UTC),
            ids=lambda: f"id-{next(_NUMBERS):09}",
        ),
        format=form,
    )
