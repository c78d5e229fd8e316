"""The services of documents, which are one of those of a namespace.

What they need of others comes with them (`DocumentNeeds`): the index of sections has the words of
documents too, and deep recall what was answered from them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anaphora.container.services import service
from anaphora.errors import NotFound
from anaphora.store.documents import document_id_of
from anaphora.store.records.rows import DOCUMENT

if TYPE_CHECKING:
    from datetime import datetime

    from anaphora.container.filling import VectorFilling
    from anaphora.embed.service import EmbedderService
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.sections.index import SectionIndex
    from anaphora.ingest.documents.writing import DocumentWriter, OnGone
    from anaphora.ingest.memories import Survivors
    from anaphora.recall.memories import MemoryRecall
    from anaphora.store.documents import Documents
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.values.memories import Forgotten, MemoryRecord, SurvivingSource


@dataclass(frozen=True, slots=True)
class DocumentNeeds:
    """The dependencies of document services. `purge` removes text from the disk, `filling`
    computes vectors in the background."""

    embedder: EmbedderService
    clock: Callable[[], datetime]
    ids: Callable[[], str]
    index: Callable[[str, Records, Callable[[MemoryRecord], str]], MemoryIndex]
    sections: Callable[[], SectionIndex]
    purge: Callable[[], object]
    on_gone: OnGone
    survivors: Survivors
    filling: VectorFilling


class DocumentServices:
    """The services that store, find and forget the documents of one namespace."""

    def __init__(self, store: Documents, needs: Callable[[], DocumentNeeds]) -> None:
        self.store = store
        self.closed = False
        self._make_needs = needs
        self._locks: dict[str, threading.RLock] = {}

    def lock_of(self, name: str) -> threading.RLock:
        """The lock for creating one service."""
        return self._locks.setdefault(name, threading.RLock())

    @service
    def _needs(self) -> DocumentNeeds:
        return self._make_needs()

    @service
    def index(self) -> MemoryIndex:
        """The index of document sections."""
        from anaphora.store.documents import section_names

        return self._needs.index("documents", self.store.sections, section_names)

    @service
    def writing(self) -> DocumentWriter:
        """Adds documents."""
        from anaphora.ingest.documents.writing import DocumentWriter

        needs = self._needs
        return DocumentWriter(
            self.store,
            needs.embedder,
            clock=needs.clock,
            ids=needs.ids,
            on_gone=needs.on_gone,
            later=needs.filling.begin,
        )

    @service
    def recall(self) -> MemoryRecall:
        """The document lane: sections do not fade with age and replace no other."""
        from anaphora.recall.memories import MemoryRecall
        from anaphora.store.documents import section_names
        from anaphora.values.memories import NEVER_FADING

        return MemoryRecall(
            self.store.sections,
            self.index,
            self._needs.embedder,
            self._needs.clock,
            NEVER_FADING,
            fill=partial(self._needs.filling.in_call, self.writing.fill_vectors),
            later=self._needs.filling.begin,
            by_currency=False,
            title_of=section_names,
        )

    # The index is opened only if there are documents.

    def lane_if_any(self) -> MemoryRecall | None:
        """The document lane, or None without documents."""
        return self.recall if self.store.holds_any() else None

    def index_if_any(self) -> tuple[Records, MemoryIndex] | None:
        """The sections and their index, or None without documents."""
        return (self.store.sections, self.index) if self.store.holds_any() else None

    def fill_some(self, limit: int, *, stopping: Callable[[], bool]) -> int:
        """Compute missing vectors of at most `limit` sections; returns how many."""
        if not self.store.holds_any():
            return 0
        return self.writing.fill_vectors(limit, stopping=stopping)

    def fill(self) -> tuple[MemoryIndex, ...]:
        """Compute missing vectors; returns the updated index, if there are documents."""
        if not self.store.holds_any():
            return ()
        self.writing.fill_vectors()
        self.index.sync()
        return (self.index,)

    def forget(self, document_id: str, *, soft: bool, dry_run: bool) -> Forgotten:
        """Forget a document; when this returns no file contains its text. `NotFound`.

        With `dry_run` nothing is changed. The result lists what still contains the text.
        """
        from anaphora.ingest.memories import named

        if not self.store.versions.many([document_id]):
            raise NotFound("memory", document_id)
        if dry_run:
            would = self.writing.would_forget(document_id)
            return named(would, self._surviving(would))
        forgotten_documents = self.writing.forget(document_id, soft=soft)
        if not forgotten_documents.ids or soft:
            return named(forgotten_documents, ())
        self.store.truth.scrub()
        self.index.purge()
        self._needs.sections().purge()
        # Facts extracted from it were deleted, too.
        self._needs.purge()
        return named(forgotten_documents, self._surviving(forgotten_documents))

    def _surviving(self, gone: ForgottenRecords) -> Iterator[SurvivingSource]:
        """What else contains the text of forgotten documents."""
        forgotten_ids = frozenset(gone.ids)
        for source in self._needs.survivors(gone.texts):
            if source.kind != DOCUMENT or document_id_of(source.id) not in forgotten_ids:
                yield source

    def close(self) -> None:
        """Release everything; services that were not created stay so."""
        self.closed = True
        if "index" in vars(self):
            self.index.close()
