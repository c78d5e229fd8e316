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
    """What the services of documents need of others. `purge` takes words off the disk, `filling`
    makes vectors behind the calls."""

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
    """What documents of one namespace are kept, found and forgotten with."""

    def __init__(self, store: Documents, needs: Callable[[], DocumentNeeds]) -> None:
        self.store = store
        self.closed = False
        self._make_needs = needs
        self._locks: dict[str, threading.RLock] = {}

    def lock_of(self, name: str) -> threading.RLock:
        """The lock under which one service is made."""
        return self._locks.setdefault(name, threading.RLock())

    @service
    def _needs(self) -> DocumentNeeds:
        return self._make_needs()

    @service
    def index(self) -> MemoryIndex:
        """The index of their sections."""
        from anaphora.store.documents import section_names

        return self._needs.index("documents", self.store.sections, section_names)

    @service
    def writing(self) -> DocumentWriter:
        """Takes them in."""
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
        """Their lane: each stands for itself, however old, and replaces no other."""
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

    # Their index is opened only where there is anything for it.

    def lane_if_any(self) -> MemoryRecall | None:
        """Their lane, None where there are none."""
        return self.recall if self.store.holds_any() else None

    def index_if_any(self) -> tuple[Records, MemoryIndex] | None:
        """Their sections and the index of these, None where there are none."""
        return (self.store.sections, self.index) if self.store.holds_any() else None

    def fill_some(self, limit: int, *, stopping: Callable[[], bool]) -> int:
        """Make the vectors that at most `limit` sections lack; how many got theirs."""
        if not self.store.holds_any():
            return 0
        return self.writing.fill_vectors(limit, stopping=stopping)

    def fill(self) -> tuple[MemoryIndex, ...]:
        """Make the vectors that sections lack, and follow; the index where there are any."""
        if not self.store.holds_any():
            return ()
        self.writing.fill_vectors()
        self.index.sync()
        return (self.index,)

    def forget(self, document_id: str, *, soft: bool, dry_run: bool) -> Forgotten:
        """Forget a document; when this returns its words have left every file. `NotFound`.

        With `dry_run` nothing is changed. What still holds the words is told.
        """
        from anaphora.ingest.memories import named

        if not self.store.versions.many([document_id]):
            raise NotFound("memory", document_id)
        if dry_run:
            would = self.writing.would_forget(document_id)
            return named(would, self._surviving(would))
        gone = self.writing.forget(document_id, soft=soft)
        if not gone.ids or soft:
            return named(gone, ())
        self.store.truth.scrub()
        self.index.purge()
        self._needs.sections().purge()
        # A fact that was taken from it went too.
        self._needs.purge()
        return named(gone, self._surviving(gone))

    def _surviving(self, gone: ForgottenRecords) -> Iterator[SurvivingSource]:
        """What else holds the words of documents that are gone, or would be."""
        own = frozenset(gone.ids)
        for one in self._needs.survivors(gone.texts):
            if one.kind != DOCUMENT or document_id_of(one.id) not in own:
                yield one

    def close(self) -> None:
        """Let go for good; a service not made yet is not made."""
        self.closed = True
        if "index" in vars(self):
            self.index.close()
