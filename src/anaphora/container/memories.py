"""The services of a namespace for memories."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.ingest.contradictions import Contradictions
    from anaphora.ingest.memories import MemoryEraser, MemoryWriter
    from anaphora.recall.memories import MemoryRecall
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors


class MemoryServices:
    """What a namespace works with for its memories."""

    def __init__(self, services: NamespaceServices) -> None:
        self._services = services
        self.locks: dict[str, threading.RLock] = {}

    @property
    def closed(self) -> bool:
        """Whether the namespace is closed: no service is created any more."""
        return self._services.closed

    @service
    def records(self) -> Records:
        """Lasting memories."""
        from anaphora.store.records.store import Records

        return Records(self._services.truth, self._services.namespace, self._services.rows_sealer)

    @service
    def vectors(self) -> RecordVectors:
        """The vectors of memories."""
        from anaphora.store.records.vectors import RecordVectors

        return RecordVectors(
            self._services.truth, self._services.namespace, self._services.rows_sealer
        )

    @service
    def index(self) -> MemoryIndex:
        """The index of memories."""
        from anaphora.index.memories.index import MemoryIndex

        return MemoryIndex(
            self._services.index_folder / "memories",
            self.records,
            self.vectors,
            self._services.vectors_of,
            cap=self._services.exact_cap,
            sealer=self._services.sealing.index(self._services.namespace),
        )

    @service
    def writer(self) -> MemoryWriter:
        """Keeps memories."""
        from anaphora.ingest.memories import MemoryWriter

        return MemoryWriter(
            self.records,
            self.vectors,
            self._services.embedder,
            self.index.neighbours,
            clock=self._services.clock,
            ids=self._services.ids,
            follow=self.index.take,
            later=self._services.fill_in_background,
        )

    @service
    def eraser(self) -> MemoryEraser:
        """Forgets memories."""
        from anaphora.ingest.memories import MemoryEraser

        return MemoryEraser(
            self.records,
            clock=self._services.clock,
            survivors=self._services.survivors.of,
            has_turn=self._services.conversation.has_turn,
            derived=self._services.list_derived,
            on_gone=self._services.forget_derived,
        )

    @service
    def contradictions(self) -> Contradictions:
        """Memories that seem to contradict each other."""
        from anaphora.ingest.contradictions import Contradictions

        return Contradictions(self.records, self._services.clock)

    def settle_index(self) -> None:
        """Remove forgotten text from the index's files, too."""
        self.index.sync()
        self.index.settle()

    @service
    def recall_memories(self) -> MemoryRecall:
        """The memory lane."""
        from anaphora.recall.memories import MemoryRecall

        return MemoryRecall(
            self.records,
            self.index,
            self._services.embedder,
            self._services.local_clock,
            self._services.container.settings.half_lives,
            fill=self._fill_vectors,
            later=self._services.fill_in_background,
            reader=self._services.container.reader,
        )

    def _fill_vectors(self, limit: int) -> None:
        # Most questions find nothing to fill, and need not load what writes.
        self._services.filling.in_call(self.writer.fill_vectors, limit)

    @service
    def recall_memories_and_notes(self) -> MemoryRecall:
        """The memory lane over memories, and over the notes of features."""
        notes = next(
            (notes for feature in self._services.features if (notes := feature.notes())), None
        )

        def fill(limit: int) -> None:
            self._fill_vectors(limit)
            for feature in self._services.features:
                self._services.filling.in_call(feature.fill_in_call, limit)

        return replace(self.recall_memories, notes=notes, fill=fill)
