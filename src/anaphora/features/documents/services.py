"""The services that store, find and forget the documents of one namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.calls.progress import Progress
    from anaphora.container.filling import Fill
    from anaphora.features.documents.reading.writing import DocumentWriter
    from anaphora.features.documents.store import Documents
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.recall.identifiers import Identifier
    from anaphora.recall.lanes import Lane
    from anaphora.recall.memories import MemoryRecall
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.values.files import TakenFile
    from anaphora.values.memories import Forgotten, SurvivingSource

_FOLDER: Final = "documents"
"""The folder of the index of sections, among those of a namespace."""


class DocumentServices(FeatureServices):
    """The documents of one namespace. Their index is opened only if there are any."""

    name = "documents"

    @service
    def store(self) -> Documents:
        """Stored documents."""
        from anaphora.features.documents.store import Documents

        services = self.services
        return Documents(services.truth, services.namespace, services.rows_sealer)

    @service
    def index(self) -> MemoryIndex:
        """The index of document sections."""
        from anaphora.features.documents.store import section_names

        return self.services.record_index(_FOLDER, self.store.sections, section_names)

    @service
    def writing(self) -> DocumentWriter:
        """Adds documents."""
        from anaphora.features.documents.reading.writing import DocumentWriter

        services = self.services
        return DocumentWriter(
            self.store,
            services.embedder,
            clock=services.clock,
            ids=services.ids,
            on_gone=services.forget_derived,
            later=services.filling.begin,
        )

    @service
    def recall(self) -> MemoryRecall:
        """The document lane: sections do not fade with age and replace no other."""
        from anaphora.features.documents.store import section_names
        from anaphora.recall.memories import MemoryRecall
        from anaphora.recall.memory_source import MemorySource
        from anaphora.values.memories import NEVER_FADING

        services = self.services
        sections = MemorySource(
            self.store.sections,
            self.index,
            services.embedder,
            NEVER_FADING,
            by_currency=False,
            title_of=section_names,
        )
        return MemoryRecall(
            sections,
            services.clock,
            fill=lambda pending: services.filling.in_call(self.writing.fill_vectors, pending),
            later=services.filling.begin,
        )

    def lanes(self) -> Iterable[Lane]:
        """As in `FeatureServices`."""
        from anaphora.features.documents.lane import document_lane

        return (document_lane(lambda: self.recall if self.store.versions.holds_any() else None),)

    def evidence(self) -> Mapping[str, MemoryRecall]:
        """As in `FeatureServices`."""
        return {"document": self.recall} if self.store.versions.holds_any() else {}

    def record_stores(self) -> Iterable[Records]:
        """As in `FeatureServices`."""
        return (self.store.versions,)

    def fills(self) -> Iterable[Fill]:
        """As in `FeatureServices`."""
        return (self.writing.fill_vectors,) if self.store.versions.holds_any() else ()

    def fill(self, progress: Progress | None) -> Iterable[MemoryIndex]:
        """As in `FeatureServices`."""
        if not self.store.versions.holds_any():
            return ()
        self.writing.fill_vectors()
        self.index.sync()
        return (self.index,)

    def take_file(self, source: Path | bytes, name: str | None, *, again: bool) -> TakenFile:
        """As in `FeatureServices`: the file is a document."""
        from anaphora.errors import InvalidInput, MissingExtra
        from anaphora.features.documents.reading.base import OtherKind
        from anaphora.features.documents.reading.writing import NewDocument, document_in
        from anaphora.values.files import TakenFile

        try:
            document = NewDocument(*document_in(source, name))
            if not again and self.writing.has_forgotten(document):
                return TakenFile("forgotten")
            done = self.writing.add(document, embed=False)
        except InvalidInput as error:
            is_other = isinstance(error.__cause__, OtherKind)
            return TakenFile("left_out" if is_other else "failed", error.reason)
        except MissingExtra as error:
            return TakenFile("failed", str(error))
        action: Literal["added", "known"] = "known" if done.action == "known" else "added"
        return TakenFile(action, "", done.problems, done.redacted)

    def forget(self, record_id: str, *, soft: bool, dry_run: bool) -> Forgotten | None:
        """As in `FeatureServices`; when this returns no file contains the text."""
        from anaphora.ingest.memories import named

        if not self.store.versions.many([record_id]):
            return None
        if dry_run:
            would = self.writing.would_forget(record_id)
            return named(would, self._list_surviving(would))
        forgotten_documents = self.writing.forget(record_id, soft=soft)
        if not forgotten_documents.ids or soft:
            return named(forgotten_documents, ())
        # Facts extracted from it were deleted, too.
        self.services.purge()
        return named(forgotten_documents, self._list_surviving(forgotten_documents))

    def _list_surviving(self, gone: ForgottenRecords) -> Iterator[SurvivingSource]:
        """What else contains the text of forgotten documents."""
        from anaphora.features.documents.store import document_id_of
        from anaphora.store.records.rows import DOCUMENT

        forgotten_ids = frozenset(gone.ids)
        for source in self.services.survivors.of(gone.texts):
            if source.kind != DOCUMENT or document_id_of(source.id) not in forgotten_ids:
                yield source

    def restore(self, record_id: str) -> tuple[str, ...]:
        """As in `FeatureServices`."""
        return self.writing.bring_back(record_id)

    def find_survivors(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """As in `FeatureServices`."""
        from anaphora.recall.survivors import find_records
        from anaphora.values.memories import SurvivingSource

        if self.store.versions.holds_any():
            for identifier in identifiers:
                for record in find_records(identifier, self.store.sections, self.index):
                    yield SurvivingSource("document", record.id)

    def purge(self) -> None:
        """As in `FeatureServices`."""
        # The last document may be gone from the home already, but not from the index's files.
        if "index" in vars(self) or (self.services.index_folder / _FOLDER).is_dir():
            self.index.purge()

    def counts(self) -> Mapping[str, int]:
        """As in `FeatureServices`."""
        return {"documents": self.store.count()}

    def close(self) -> None:
        """As in `FeatureServices`."""
        self.close_created("index")
