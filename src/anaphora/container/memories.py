"""The services of a namespace for memories."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anaphora.container.services import ServiceGroup, service

if TYPE_CHECKING:
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.ingest.contradictions import Contradictions
    from anaphora.ingest.memories import MemoryEraser, MemoryWriter
    from anaphora.recall.memories import MemoryRecall
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.records.written import WrittenRecords


class MemoryServices(ServiceGroup):
    """What a namespace works with for its memories."""

    @service
    def records(self) -> Records:
        """Lasting memories."""
        from anaphora.store.records.store import Records

        return Records(self.services.truth, self.services.namespace, self.services.rows_sealer)

    @service
    def vectors(self) -> RecordVectors:
        """The vectors of memories."""
        from anaphora.store.records.vectors import RecordVectors

        return RecordVectors(
            self.services.truth, self.services.namespace, self.services.rows_sealer
        )

    @service
    def index(self) -> MemoryIndex:
        """The index of memories."""
        return self.services.record_index("memories", self.records)

    @service
    def writer(self) -> MemoryWriter:
        """Keeps memories."""
        from anaphora.ingest.memories import MemoryWriter

        return MemoryWriter(
            self.records,
            self.vectors,
            self.services.embedder,
            self.index.neighbours,
            self.services.container.judge.judge_features,
            clock=self.services.clock,
            ids=self.services.ids,
            follow=self._follow,
            later=self.services.fill_in_background,
        )

    def _follow(self, written: WrittenRecords) -> None:
        self.index.take(written)
        self.services.link_in_background()

    @service
    def eraser(self) -> MemoryEraser:
        """Forgets memories."""
        from anaphora.ingest.memories import MemoryEraser

        return MemoryEraser(
            self.records,
            clock=self.services.clock,
            survivors=self.services.survivors.of,
            has_turn=self.services.conversation.has_turn,
            with_text=self.index.with_text,
            derived=self.services.list_derived,
            on_gone=self.services.forget_derived,
        )

    @service
    def contradictions(self) -> Contradictions:
        """Memories that seem to contradict each other."""
        from anaphora.ingest.contradictions import Contradictions

        return Contradictions(self.records, self.services.clock)

    def settle_index(self) -> None:
        """Remove forgotten text from the index's files, too."""
        self.index.sync()
        self.index.settle()

    @service
    def recall_memories(self) -> MemoryRecall:
        """The memory lane."""
        from anaphora.recall.memories import MemoryRecall
        from anaphora.recall.memory_source import MemorySource

        half_lives = self.services.container.settings.half_lives
        return MemoryRecall(
            MemorySource(self.records, self.index, self.services.embedder, half_lives),
            self.services.local_clock,
            fill=self._fill_vectors,
            later=self.services.fill_in_background,
            reader=self.services.container.reader,
            links=self.services.links,
        )

    def _fill_vectors(self, pending: int) -> None:
        # Most questions find nothing to fill, and need not load what writes.
        self.services.filling.in_call(self.writer.fill_vectors, pending)

    @service
    def recall_memories_and_notes(self) -> MemoryRecall:
        """The memory lane over memories, and over the notes of features."""
        notes = next(
            (notes for feature in self.services.features if (notes := feature.notes())), None
        )

        def fill(pending: int) -> None:
            self._fill_vectors(pending)
            for feature in self.services.features:
                self.services.filling.in_call(feature.fill_in_call, pending)

        memories = self.recall_memories
        return replace(memories, source=replace(memories.source, notes=notes), fill=fill)
