"""The services of projects and of notes about them in one namespace."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.calls.progress import Progress
    from anaphora.container.filling import Fill
    from anaphora.container.pages import NotePages
    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.indexing.indexing import ProjectIndexer
    from anaphora.features.projects.indexing.upkeep import ProjectUpkeep
    from anaphora.features.projects.notes import NoteWriter
    from anaphora.features.projects.recall.lane import ContextRecall
    from anaphora.features.projects.recall.warm_up import WarmUpRecall
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.notes import Notes
    from anaphora.features.projects.store.store import Projects
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.ingest.stored_secrets import StoredSecrets
    from anaphora.recall.identifiers import Identifier
    from anaphora.recall.lanes import Lane
    from anaphora.recall.memory_source import KeptNotes
    from anaphora.recall.session.standing import StandingContext
    from anaphora.store.records.store import Records
    from anaphora.values.context import ContextMemory
    from anaphora.values.conversations import Check
    from anaphora.values.memories import Forgotten, MemoryRecord, SurvivingSource


class ProjectServices(FeatureServices):
    """Projects and notes of one namespace; their index is opened only if there are any."""

    name = "projects"

    # Stores.

    @service
    def store(self) -> Projects:
        """Indexed projects: files, sections and their vectors."""
        from anaphora.features.projects.store.store import Projects

        services = self.services
        around = services.conversation.session_places.folders_around
        return Projects(services.truth, services.namespace, services.rows_sealer, around)

    @service
    def graph(self) -> Graph:
        """Entities of projects and notes, and their relations."""
        from anaphora.features.projects.store.graph import Graph

        services = self.services
        return Graph(services.truth, services.namespace, services.rows_sealer)

    @service
    def note_store(self) -> Notes:
        """Observations and diary entries."""
        from anaphora.features.projects.store.notes import Notes

        services = self.services
        return Notes(services.truth, services.namespace, services.rows_sealer)

    @service
    def notes_and_documents(self) -> Notes:
        """Notes, and the sections of documents, which are notes to the context lane."""
        from anaphora.features.projects.store.notes import INDEXED_KINDS, Notes

        services = self.services
        return Notes(services.truth, services.namespace, services.rows_sealer, kinds=INDEXED_KINDS)

    @service
    def observations(self) -> Records:
        """Notes and diary entries, as the memory lane reads them."""
        from anaphora.features.projects.store.notes import RECORD_KINDS
        from anaphora.store.records.store import Records

        services = self.services
        return Records(services.truth, services.namespace, services.rows_sealer, kinds=RECORD_KINDS)

    # Indexes.

    @service
    def observation_index(self) -> MemoryIndex:
        """The index of those. The folder of an earlier one, of observations alone, is removed."""
        services = self.services
        shutil.rmtree(services.index_folder / "observations", ignore_errors=True)
        return services.record_index("notes", self.observations)

    @service
    def sections(self) -> SectionIndex:
        """The index of sections, of projects and of documents, and notes."""
        from anaphora.features.projects.index.index import SectionIndex
        from anaphora.features.projects.store.source import SectionSource

        services = self.services
        return SectionIndex(
            services.index_folder / "context",
            SectionSource(services.truth, services.namespace, services.rows_sealer),
            services.vectors_of,
            sealer=services.sealing.index(services.namespace),
        )

    # Writing.

    @service
    def indexing(self) -> ProjectIndexer:
        """Brings projects in line with their files."""
        from anaphora.features.projects.indexing.indexing import ProjectIndexer

        services = self.services
        return ProjectIndexer(
            self.store,
            self.graph,
            self.note_store,
            services.embedder,
            clock=services.clock,
            ids=services.ids,
            note_folder=services.conversation.sessions.note_folder,
            question=services.conversation.session_places.question,
        )

    @service
    def note_taking(self) -> NoteWriter:
        """Keeps notes about projects."""
        from anaphora.features.projects.notes import NoteLinker, NoteWriter

        services = self.services
        linker = NoteLinker(self.graph, self.note_store, clock=services.clock, ids=services.ids)
        return NoteWriter(self.store, linker, services.embedder, services.link_in_background)

    def pages(self) -> NotePages:
        """As in `FeatureServices`."""
        from anaphora.features.projects.pages import ObservationPages

        return ObservationPages(self.note_store, self.note_taking)

    @service
    def upkeep(self) -> ProjectUpkeep:
        """Keeps rows, vectors and index of projects and notes together."""
        from anaphora.features.projects.indexing.upkeep import ProjectUpkeep

        return ProjectUpkeep(self.store, self.indexing, self.note_taking, self.sections)

    # Reading.

    def holds_any(self) -> bool:
        """Whether there are projects, notes or documents for the context lane."""
        return self.notes_and_documents.holds_any() or self.store.holds_sections()

    def context_if_any(self) -> ContextRecall | None:
        """The context lane, or None if it has nothing to read."""
        return self.recall_context if self.holds_any() else None

    @service
    def recall_context(self) -> ContextRecall:
        """The context lane."""
        from anaphora.features.projects.recall.lane import ContextRecall

        services = self.services
        return ContextRecall(
            self.store,
            self.graph,
            self.notes_and_documents,
            self.sections,
            services.embedder,
            services.clock,
            refresh=self.upkeep.refresh,
            fill=self.upkeep.begin_filling,
        )

    @service
    def warm_up(self) -> WarmUpRecall:
        """The context lane at the beginning of a session."""
        from anaphora.features.projects.recall.warm_up import WarmUpRecall
        from anaphora.recall.session.belonging import EVERYTHING, project_around
        from anaphora.recall.session.standing import StandingContext

        services = self.services

        def standing(directory: str | None) -> StandingContext:
            _, view = services.conversation.turn_index.synced_view(None, embed="none")
            project = EVERYTHING
            if directory is not None:
                own_rows = self.store.around(directory)
                indexed = {row.name: row in own_rows for row in self.store.rows()}
                project = project_around(directory, services.conversation.session_places, indexed)
            return StandingContext(
                services.memory.records,
                services.conversation.threads,
                view,
                services.clock(),
                services.container.judge.judge_features,
                project,
                # These are made, and loaded, only where a session is shown.
                lambda session: services.conversation.recall_tool_calls.of(session),  # noqa: PLW0108
                services.find_replacing,
            )

        def opening(
            standing: StandingContext, memories: Sequence[MemoryRecord]
        ) -> list[ContextMemory]:
            return [
                memory
                for feature in services.features
                for memory in feature.opening(standing, memories)
            ]

        tokens = services.container.settings.core_tokens
        question = services.conversation.session_places.question
        return WarmUpRecall(
            lambda: self.recall_context,
            self.store,
            self.notes_and_documents,
            standing,
            opening,
            tokens,
            question,
        )

    def lanes(self) -> Iterable[Lane]:
        """As in `FeatureServices`."""
        from anaphora.features.projects.recall.search_lane import file_lane

        return (file_lane(self.context_if_any),)

    def notes(self) -> KeptNotes | None:
        """As in `FeatureServices`."""
        from anaphora.recall.memory_source import KeptNotes

        return KeptNotes(self.observations, self.observation_index)

    def record_stores(self) -> Iterable[Records]:
        """As in `FeatureServices`."""
        return (self.observations,)

    def get(self, record_id: str) -> MemoryRecord | None:
        """As in `FeatureServices`."""
        return self.observations.many([record_id]).get(record_id)

    # Vectors.

    def fills(self) -> Iterable[Fill]:
        """As in `FeatureServices`; sections of files have a background of their own."""
        return (self.note_taking.fill_vectors,)

    def fill(self, progress: Progress | None) -> Iterable[MemoryIndex]:
        """As in `FeatureServices`."""
        self.upkeep.fill_vectors(progress)
        self.observation_index.sync()
        return (self.observation_index,)

    def fill_in_call(self, limit: int, room: int) -> None:
        """As in `FeatureServices`."""
        self.note_taking.fill_vectors(limit, room=room)

    # Forgetting.

    def forget(self, record_id: str, *, soft: bool, dry_run: bool) -> Forgotten | None:
        """As in `FeatureServices`: a note."""
        if not self.note_store.many([record_id]):
            return None
        forgotten_note = self.upkeep.forget_note(
            record_id, soft=soft, dry_run=dry_run, survivors=self.services.survivors.of
        )
        if forgotten_note.count and not soft and not dry_run:
            self.observation_index.purge()
        return forgotten_note

    def restore(self, record_id: str) -> tuple[str, ...]:
        """As in `FeatureServices`."""
        return self.note_taking.bring_back(record_id)

    def find_survivors(self, identifiers: Sequence[Identifier]) -> Iterator[SurvivingSource]:
        """As in `FeatureServices`: sections of files, and notes, past ones too."""
        from anaphora.features.projects.recall.survivors import find_survivors

        if self.holds_any():
            now = self.services.clock()
            for identifier in identifiers:
                yield from find_survivors(identifier, self.sections, self.note_store, now)

    def purge(self) -> None:
        """As in `FeatureServices`."""
        self.sections.purge()

    def holding_secrets(self, most: int | None) -> tuple[str, ...]:
        """As in `FeatureServices`."""
        return self._stored_secrets().holding(most)

    def redact_secrets(self) -> tuple[str, ...]:
        """As in `FeatureServices`."""
        changed_ids = self._stored_secrets().redact()
        if changed_ids:
            self.observation_index.purge()
            self.sections.purge()
            self.note_taking.fill_vectors()
        return changed_ids

    def _stored_secrets(self) -> StoredSecrets:
        from anaphora.ingest.stored_secrets import StoredSecrets

        return StoredSecrets(self.observations, on_gone=None)

    # Maintenance.

    def counts(self) -> Mapping[str, int]:
        """As in `FeatureServices`."""
        from anaphora.features.projects.care import count_projects

        return count_projects(self)

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.projects.care import check_projects

        return check_projects(self)

    def repair(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.projects.care import repair_sections

        return (repair_sections(self),)

    def close(self) -> None:
        """As in `FeatureServices`."""
        self.close_created("observation_index", "upkeep", "sections")
