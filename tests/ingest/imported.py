"""What the importers give of a path, file after file, and an import into stores of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from anaphora.ingest.conversations import ConversationImport
from anaphora.ingest.imported_memories import ImportedMemoryWriter
from anaphora.ingest.importers import file_imports
from anaphora.ingest.importers.base import BOUNDS, Bounds, ImportItem
from anaphora.ingest.importing import import_files
from anaphora.store.records.store import Records
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.sidecar import Sidecar
from anaphora.values.conversations import ImportReport, Source

_NUMBERS = itertools.count()


def read(
    path: Path | str, form: str | None = None, bounds: Bounds = BOUNDS
) -> Iterator[ImportItem]:
    """Every conversation and memory under a path, and what could not be read. Raises at once."""
    given = file_imports(path, form, bounds)
    return (item for one in given for item in one.items)


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
