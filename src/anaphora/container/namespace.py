"""A namespace: its services, and which of them needs which.

Every service is made when it is first used. Some get a callback into another one, whose type is
named where it is called: docs/architecture.md lists these.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anaphora.container.services import service
from anaphora.core.progress import Progress, labelled
from anaphora.store.records.titles import record_title
from anaphora.store.threads.gojson import REDACTED
from anaphora.values.memories import Reindexed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from anaphora.container.documents import DocumentServices
    from anaphora.container.filling import Fill, VectorFilling
    from anaphora.container.home import Container
    from anaphora.deep.dreaming.extract import FactExtractor
    from anaphora.deep.dreaming.jobs import DreamCycle, JobQueue
    from anaphora.deep.persisted.answers import TraceStore
    from anaphora.deep.persisted.forgetting import DeepForgetting
    from anaphora.deep.persisted.gaps import GapStore
    from anaphora.deep.recall import DeepRecall
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.contradictions import Contradictions
    from anaphora.ingest.conversations import ConversationImport
    from anaphora.ingest.imported_memories import ImportedMemoryWriter
    from anaphora.ingest.memories import MemoryEraser, MemoryWriter
    from anaphora.ingest.notes import NoteWriter
    from anaphora.ingest.pinning import CoreBlockWriter
    from anaphora.ingest.projects.indexing import ProjectIndexer
    from anaphora.ingest.projects.upkeep import ProjectUpkeep
    from anaphora.ingest.sessions import SessionWriter
    from anaphora.recall.context.core_block import CoreBlockRecall
    from anaphora.recall.context.lane import ContextRecall
    from anaphora.recall.context.warm_up import WarmUpRecall
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.everything import EverythingRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.places import SessionPlaces
    from anaphora.recall.short_ids import ShortIds
    from anaphora.recall.survivors import Survivors
    from anaphora.recall.tool_calls import ToolCallRecall
    from anaphora.store.audit import AuditTrail
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Database
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.notes import Notes
    from anaphora.store.projects.store import Projects
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.table_rows import TableRows
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore
    from anaphora.values.memories import Forgotten, MemoryRecord

_CLOSED = (
    "turns", "memories", "observation_index", "call_index", "documents", "upkeep", "sections",
)  # fmt: skip


class NamespaceServices:
    """What one namespace of a home works with. Safe to share between threads.

    `truth` is the home's own database, or another view of it such as a `snapshot`, with which only
    stores can be used.
    """

    def __init__(self, container: Container, namespace: str, truth: Database | None = None) -> None:
        self.container = container
        self.namespace = namespace
        self.truth = container.truth if truth is None else truth
        self.sealing = container.sealing
        self.embedder = container.embedder
        self.clock, self.local_clock = container.clock, container.clock.local
        self.ids = container.ids
        self.closed = False
        self._locks: dict[str, threading.RLock] = {}
        self._projects_known: tuple[int, bool] = (-1, False)

    def lock_of(self, name: str) -> threading.RLock:
        """The lock under which one service is made."""
        return self._locks.setdefault(name, threading.RLock())

    # Where things lie, and how they are sealed.

    @property
    def folder(self) -> Path:
        """Where its threads lie."""
        return self.container.home.folder(self.namespace)

    @property
    def _index_folder(self) -> Path:
        from anaphora.store.home.sealing import folder_name

        return self.container.home.root / "index" / folder_name(self.namespace)

    @property
    def _rows(self) -> Sealer:
        return self.sealing.rows

    @property
    def _exact_cap(self) -> int | None:
        # LanceDB would keep vectors in clear.
        return None if self.sealing.sealed else self.container.settings.exact_cap

    @property
    def _vectors_of(self) -> tuple[str, int]:
        return self.embedder.name, self.embedder.dimensions

    # Stores.

    @service
    def sidecar(self) -> Sidecar:
        """What thread files have no place for."""
        from anaphora.store.threads.sidecar import Sidecar

        return Sidecar(self.truth, self.namespace, self._rows)

    @service
    def conversations(self) -> ConversationStore | SqlConversationStore:
        """The threads. Strict; each write counts as a call on the home."""
        from anaphora.store.home.opening import open_conversations
        from anaphora.store.threads.conversations import WriteHooks, surround_writes

        store = open_conversations(
            self.truth,
            self.sidecar,
            self.sealing,
            # Where truth is on a server, threads are there too.
            self.folder if self.container.truth.path is not None else None,
            clock=self.local_clock,
            on_removed=self._words_removed,
        )
        hooks = WriteHooks(self.container.calls.under_way, self.audit.add_turns)
        return surround_writes(store, hooks)

    @service
    def audit(self) -> AuditTrail:
        """The audit trail, if one is recorded."""
        from anaphora.store.audit import AuditTrail

        return AuditTrail(self.truth, self.namespace, self._rows)

    def _words_removed(self, conversation_id: str) -> None:
        """Remove deleted or redacted text from the index files before the next question."""
        self.turns.sync(conversation_id, embed="none")
        thread = self.conversations.get(conversation_id)
        remaining = None
        if thread is not None:
            remaining = frozenset(n for n, turn in enumerate(thread.turns) if turn.text != REDACTED)
        if self.sessions.forget_removed(conversation_id, remaining):
            self.call_index.purge()
            self.truth.scrub()
        self.deep_forgetting.forget_conversation(conversation_id)
        self.container.on_removal(self)

    @service
    def records(self) -> Records:
        """Lasting memories."""
        from anaphora.store.records.store import Records

        return Records(self.truth, self.namespace, self._rows)

    @service
    def vectors(self) -> RecordVectors:
        """The vectors of memories."""
        from anaphora.store.records.vectors import RecordVectors

        return RecordVectors(self.truth, self.namespace, self._rows)

    @service
    def projects(self) -> Projects:
        """Indexed projects: files, sections and their vectors."""
        from anaphora.store.projects.store import Projects

        return Projects(self.truth, self.namespace, self._rows)

    @service
    def graph(self) -> Graph:
        """Entities of projects and notes, and their relations."""
        from anaphora.store.projects.graph import Graph

        return Graph(self.truth, self.namespace, self._rows)

    @service
    def notes(self) -> Notes:
        """Observations and diary entries."""
        from anaphora.store.projects.notes import Notes

        return Notes(self.truth, self.namespace, self._rows)

    @service
    def notes_and_documents(self) -> Notes:
        """Notes, and the sections of documents, which are notes to the context lane."""
        from anaphora.store.projects.notes import INDEXED_KINDS, Notes

        return Notes(self.truth, self.namespace, self._rows, kinds=INDEXED_KINDS)

    @service
    def documents(self) -> DocumentServices:
        """Documents, with services of their own."""
        from anaphora.container.documents import DocumentNeeds, DocumentServices
        from anaphora.store.documents import Documents

        def needs() -> DocumentNeeds:
            return DocumentNeeds(
                self.embedder,
                self.clock,
                self.ids,
                self._record_index,
                lambda: self.sections,
                self.memories.purge,
                self.deep_forgetting.forget_documents,
                self.survivors.of,
                self.filling,
            )

        return DocumentServices(Documents(self.truth, self.namespace, self._rows), needs)

    @service
    def deep_rows(self) -> TableRows:
        """What deep recall keeps."""
        from anaphora.store.table_rows import TableRows

        return TableRows(self.truth, self.namespace, self._rows)

    # Indexes.

    @service
    def turns(self) -> TurnIndex:
        """The index of turns."""
        from anaphora.index.turns.index import TurnIndex

        return TurnIndex(
            self._index_folder,
            self.conversations,
            self.sidecar,
            self.embedder,
            sealer=self.sealing.index(self.namespace),
            cap=self._exact_cap,
        )

    @service
    def memories(self) -> MemoryIndex:
        """The index of memories."""
        from anaphora.index.memories.index import MemoryIndex

        return MemoryIndex(
            self._index_folder / "memories",
            self.records,
            self.vectors,
            self._vectors_of,
            cap=self._exact_cap,
            sealer=self.sealing.index(self.namespace),
        )

    @service
    def observations(self) -> Records:
        """Notes about projects and diary entries, as the memory lane reads them."""
        from anaphora.store.projects.notes import RECORD_KINDS
        from anaphora.store.records.store import Records

        return Records(self.truth, self.namespace, self._rows, kinds=RECORD_KINDS)

    @service
    def observation_index(self) -> MemoryIndex:
        """The index of those. The folder of an earlier one, of observations alone, is removed."""
        shutil.rmtree(self._index_folder / "observations", ignore_errors=True)
        return self._record_index("notes", self.observations)

    def _record_index(
        self,
        folder: str,
        records: Records,
        title_of: Callable[[MemoryRecord], str] = record_title,
    ) -> MemoryIndex:
        from anaphora.index.memories.index import MemoryIndex
        from anaphora.store.records.vectors import RecordVectors

        return MemoryIndex(
            self._index_folder / folder,
            records,
            RecordVectors(self.truth, self.namespace, self._rows, kinds=records.kinds),
            self._vectors_of,
            cap=self._exact_cap,
            sealer=self.sealing.index(self.namespace),
            title_of=title_of,
        )

    @service
    def calls(self) -> Records:
        """Lines about what agents did with their tools."""
        from anaphora.store.records.rows import TOOL_CALL
        from anaphora.store.records.store import Records

        return Records(self.truth, self.namespace, self._rows, kinds=(TOOL_CALL,))

    @service
    def call_index(self) -> MemoryIndex:
        """The words of those."""
        return self._record_index("tool_calls", self.calls, lambda _: "")

    @service
    def sections(self) -> SectionIndex:
        """The index of sections, of projects and of documents, and notes."""
        from anaphora.index.sections.index import SectionIndex
        from anaphora.store.projects.source import SectionSource

        return SectionIndex(
            self._index_folder / "context",
            SectionSource(self.truth, self.namespace, self._rows),
            self._vectors_of,
            sealer=self.sealing.index(self.namespace),
        )

    # How things come in, and go.

    @service
    def remember(self) -> MemoryWriter:
        """Keeps memories."""
        from anaphora.ingest.memories import MemoryWriter

        return MemoryWriter(
            self.records,
            self.vectors,
            self.embedder,
            self.memories.neighbours,
            clock=self.clock,
            ids=self.ids,
            follow=self.memories.take,
            later=self.fill_in_background,
        )

    @service
    def sessions(self) -> SessionWriter:
        """Keeps what is known of agents' sessions beside their turns."""
        from anaphora.ingest.sessions import SessionWriter

        return SessionWriter(self.sidecar, self.calls, self.ids)

    def conversation_import(self, *, again: bool) -> ConversationImport:
        """Keeps what one import brings of conversations."""
        from anaphora.ingest.conversations import ConversationImport

        return ConversationImport(
            self.conversations, self.sidecar, sessions=self.sessions, again=again
        )

    def memory_import(self, *, again: bool) -> ImportedMemoryWriter:
        """Keeps what one import brings of memories."""
        from anaphora.ingest.imported_memories import ImportedMemoryWriter

        return ImportedMemoryWriter(self.records, clock=self.clock, ids=self.ids, again=again)

    @service
    def contradictions(self) -> Contradictions:
        """Memories that seem to contradict each other."""
        from anaphora.ingest.contradictions import Contradictions

        return Contradictions(self.records, self.clock)

    @service
    def indexing(self) -> ProjectIndexer:
        """Brings projects in line with their files."""
        from anaphora.ingest.projects.indexing import ProjectIndexer

        return ProjectIndexer(
            self.projects, self.graph, self.notes, self.embedder, clock=self.clock, ids=self.ids
        )

    @service
    def note_taking(self) -> NoteWriter:
        """Keeps notes about projects."""
        from anaphora.ingest.notes import NoteLinker, NoteWriter

        linker = NoteLinker(self.graph, self.notes, clock=self.clock, ids=self.ids)
        return NoteWriter(self.projects, linker, self.embedder)

    @service
    def upkeep(self) -> ProjectUpkeep:
        """Keeps truth, vectors and index of projects and notes together."""
        from anaphora.ingest.projects.upkeep import ProjectUpkeep

        return ProjectUpkeep(self.projects, self.indexing, self.note_taking, self.sections)

    @service
    def survivors(self) -> Survivors:
        """Finds what still holds the words of what was forgotten."""
        from anaphora.recall.survivors import Survivors

        return Survivors(
            self.turns,
            self.memories,
            self.records,
            self._sections_and_notes,
            self.deep_forgetting.find_holding,
            self._calls_and_index,
            self.documents.index_if_any,
            self.clock,
        )

    def _calls_and_index(self) -> tuple[Records, MemoryIndex] | None:
        # The index is opened only if there is anything for it.
        return (self.calls, self.call_index) if len(self.calls.list(limit=1)) else None

    def _sections_and_notes(self) -> tuple[SectionIndex, Notes] | None:
        return (self.sections, self.notes) if self._holds_projects() else None

    @service
    def deep_forgetting(self) -> DeepForgetting:
        """Takes what is forgotten out of what deep recall keeps."""
        from anaphora.deep.persisted.forgetting import DeepForgetting

        return DeepForgetting(
            self.deep_rows, self.records, lambda: self.conversations, self._memories_settled
        )

    def _memories_settled(self) -> None:
        """Remove forgotten text from the index's files, too."""
        self.memories.sync()
        self.memories.settle()

    @service
    def forget(self) -> MemoryEraser:
        """Forgets memories."""
        from anaphora.ingest.memories import MemoryEraser

        return MemoryEraser(
            self.records,
            clock=self.clock,
            survivors=self.survivors.of,
            has_turn=self._has_turn,
            derived=self.deep_forgetting.list_derived,
            on_gone=self.deep_forgetting.forget_memories,
        )

    def _has_turn(self, conversation_id: str, index: int) -> bool:
        thread = self.conversations.get(conversation_id)
        return thread is not None and index < len(thread.turns)

    # How things come out.

    @service
    def recall_turns(self) -> ConversationRecall:
        """The conversation lane."""
        from anaphora.ingest.secrets.masking import cut_between_secrets
        from anaphora.recall.conversation import ConversationRecall

        return ConversationRecall(
            self.conversations,
            self.turns,
            self.embedder,
            self.local_clock,
            cut=cut_between_secrets,
            reader=self.container.reader,
        )

    @service
    def recall_memories(self) -> MemoryRecall:
        """The memory lane."""
        from anaphora.recall.memories import MemoryRecall

        return MemoryRecall(
            self.records,
            self.memories,
            self.embedder,
            self.local_clock,
            self.container.settings.half_lives,
            fill=self._fill_memories,
            later=self.fill_in_background,
            reader=self.container.reader,
        )

    def _fill_memories(self, limit: int) -> None:
        # Most questions find nothing to fill, and need not load what writes.
        self.filling.in_call(self.remember.fill_vectors, limit)

    @service
    def recall_kept(self) -> MemoryRecall:
        """The memory lane over memories and over notes."""
        from anaphora.recall.memories import KeptNotes

        def fill(limit: int) -> None:
            self._fill_memories(limit)
            self.filling.in_call(self.note_taking.fill_vectors, limit)

        notes = KeptNotes(self.observations, self.observation_index)
        return replace(self.recall_memories, notes=notes, fill=fill)

    @service
    def places(self) -> SessionPlaces:
        """Where sessions took place."""
        from anaphora.recall.places import SessionPlaces

        return SessionPlaces(self.sidecar)

    @service
    def ids_known(self) -> ShortIds:
        """Short ids, as people and agents type them."""
        from anaphora.recall.short_ids import ShortIds

        documents = self.documents.store.versions
        return ShortIds(self.records, self.observations, documents, lambda: self.conversations)

    @service
    def recall_calls(self) -> ToolCallRecall:
        """The lane of tool calls."""
        from anaphora.recall.tool_calls import ToolCallRecall

        return ToolCallRecall(self.calls, self.call_index, self.clock)

    @service
    def recall_everything(self) -> EverythingRecall:
        """All lanes but the deep one."""
        from anaphora.recall.everything import EverythingRecall

        return EverythingRecall(
            self.recall_turns,
            self.recall_kept,
            self.recall_calls,
            self.places,
            self._context_if_any,
            self.documents.lane_if_any,
        )

    def _holds_projects(self) -> bool:
        """Whether there are projects; the index of sections is opened only then."""
        from anaphora.store.projects.store import holds_any

        version, (version_seen, answer) = self.truth.version(self.namespace), self._projects_known
        if version != version_seen:
            answer = holds_any(self.truth, self.namespace)
            self._projects_known = (version, answer)
        return answer

    def _context_if_any(self) -> ContextRecall | None:
        return self.recall_context if self._holds_projects() else None

    @service
    def recall_context(self) -> ContextRecall:
        """The context lane."""
        from anaphora.recall.context.lane import ContextRecall

        return ContextRecall(
            self.projects,
            self.graph,
            self.notes_and_documents,
            self.sections,
            self.embedder,
            self.clock,
            refresh=self.upkeep.refresh,
            fill=self.upkeep.begin_filling,
        )

    @service
    def warm_up(self) -> WarmUpRecall:
        """The context lane at the beginning of a session."""
        from anaphora.recall.context.belonging import EVERYTHING, project_around
        from anaphora.recall.context.standing import StandingContext
        from anaphora.recall.context.warm_up import WarmUpRecall

        def standing(directory: str | None) -> StandingContext:
            _, view = self.turns.synced_view(None, embed="none")
            project = EVERYTHING
            if directory is not None:
                names_by_root = {row.root: row.name for row in self.projects.rows()}
                project = project_around(directory, self.places, names_by_root)
            calls = self.recall_calls.of
            return StandingContext(
                self.records, self.conversations, view, self.clock(), project, calls
            )

        return WarmUpRecall(self.recall_context, standing, self.container.settings.core_tokens)

    @service
    def core_block(self) -> CoreBlockRecall:
        """What every session is told."""
        from anaphora.recall.context.core_block import CoreBlockRecall

        tokens = self.container.settings.core_tokens
        return CoreBlockRecall(self.records, self.clock, tokens)

    @service
    def pinning(self) -> CoreBlockWriter:
        """What stands in the core block, and where."""
        from anaphora.ingest.pinning import CoreBlockWriter

        return CoreBlockWriter(self.records, self.clock)

    # Deep recall.

    @service
    def gaps(self) -> GapStore:
        """Questions without an answer."""
        from anaphora.deep.persisted.gaps import GapStore

        return GapStore(self.deep_rows, clock=self.container.clock, ids=self.container.ids)

    @service
    def traces(self) -> TraceStore:
        """How answers were found."""
        from anaphora.deep.persisted.answers import TraceStore

        return TraceStore(self.deep_rows, self.container.clock)

    @service
    def recall_deep(self) -> DeepRecall:
        """The deep lane."""
        from anaphora.deep.evidence.scope import NamespaceEvidence
        from anaphora.deep.persisted.answers import AnswerCache
        from anaphora.deep.recall import DeepRecall

        evidence = NamespaceEvidence(
            self.conversations,
            self.turns,
            self.recall_turns,
            self.records,
            self.recall_memories,
            self.local_clock,
            self.documents.lane_if_any,
        )
        return DeepRecall(
            lane=evidence,
            rows=self.deep_rows,
            answers=AnswerCache(self.deep_rows, evidence, self.clock),
            gaps=self.gaps,
            traces=self.traces,
            models=self.container.tools.models,
            engine=self.container.tools.engine,
            ids=self.ids,
            timer=time.monotonic,
            execution_seconds=self.container.settings.execution_seconds,
        )

    @service
    def extract(self) -> FactExtractor:
        """Takes facts out of conversations."""
        from anaphora.deep.dreaming.extract import FactExtractor

        return FactExtractor(
            self.conversations, self.remember, self.deep_rows, self.container.clock
        )

    @service
    def jobs(self) -> JobQueue:
        """What ended sessions have queued."""
        from anaphora.deep.dreaming.jobs import JobQueue

        return JobQueue(self.deep_rows, clock=self.container.clock, ids=self.container.ids)

    @service
    def dream_cycle(self) -> DreamCycle:
        """Queued extractions, then a dream."""
        from anaphora.deep.dreaming.dream import Dreamer
        from anaphora.deep.dreaming.jobs import DreamCycle
        from anaphora.ingest.linking import Linker, Relinker

        linker = Linker(self.vectors, self.embedder, self.memories.neighbours)
        relink = Relinker(self.records, linker)
        dream = Dreamer(
            self.recall_deep, self.gaps, self.remember, relink, self.remember.fill_vectors
        )
        return DreamCycle(self.recall_deep, self.extract, dream, self.jobs)

    # What takes several services.

    def forget_any(
        self,
        record_id: str | None,
        filters: Mapping[str, Any] | None,
        *,
        soft: bool = False,
        dry_run: bool = False,
    ) -> Forgotten:
        """Forget memories, a note or a document: their ids look alike; see `Memory.forget`."""
        forgotten_records = self.forget.forget(
            record_id, filters=filters, soft=soft, dry_run=dry_run
        )
        if dry_run and (forgotten_records.count or record_id is None):
            return forgotten_records
        if forgotten_records.count and not soft:
            self.jobs.cancel_erasures(frozenset(forgotten_records.ids))
        if not forgotten_records.count and record_id is not None:
            forgotten_records = self.upkeep.forget_note(
                record_id, soft=soft, dry_run=dry_run, survivors=self.survivors.of
            )
            # One that was softly forgotten before is still there.
            forgotten_note = (
                forgotten_records.count
                or self.records.many([record_id])
                or self.notes.many([record_id])
            )
            if not forgotten_note:
                forgotten_records = self.documents.forget(record_id, soft=soft, dry_run=dry_run)
            if forgotten_records.count and not soft and not dry_run:
                self.observation_index.purge()
        elif forgotten_records.count and not soft:
            # The words must leave the index's files too, before this returns: those that hold
            # any are removed here, and made again behind this call, which takes a while.
            self.memories.purge()
        if forgotten_records.count and not soft and not dry_run:
            self.container.on_removal(self)
        return forgotten_records

    def reindex(self, progress: Progress | None) -> Reindexed:
        """Embed every turn, memory, note and section that has no vector yet."""
        turns = self.turns.sync(embed="all", progress=labelled(progress, "turns"))
        memories = self.remember.fill_vectors(progress=labelled(progress, "memories"))
        self._memories_settled()
        self.upkeep.fill_vectors(progress)
        self.documents.fill()
        if (away_error := self.embedder.away) is not None:
            raise away_error
        return Reindexed(
            self.embedder.name, turns.embedded, memories.embedded, turns.pending + memories.failed
        )

    def ready(self, timeout: float | None) -> bool:
        """Wait until the model is loaded and everything known is indexed; see `Memory.ready`."""
        timeout = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
        if not self.embedder.ready(timeout):
            if self.embedder.failure is not None:
                raise self.embedder.failure
            return False
        if not self._reader_ready(timeout):
            return False
        self.turns.sync(embed="all")
        self.remember.fill_vectors()
        self.memories.sync()
        self.upkeep.fill_vectors()
        self.observation_index.sync()
        indexes: tuple[TurnIndex | MemoryIndex, ...]
        indexes = (self.turns, self.memories, self.observation_index, *self.documents.fill())
        return all(index.wait(timeout) for index in indexes)

    def _reader_ready(self, timeout: float | None) -> bool:
        """Wait for a loading reader; answers report its failure."""
        reader = self.container.reader
        if reader is None or not reader.begun:
            return True
        return reader.ready(timeout) or reader.failure is not None

    @service
    def filling(self) -> VectorFilling:
        """The background that makes vectors."""
        from anaphora.container.filling import VectorFilling

        def fills() -> tuple[Fill, ...]:
            def fill_memories(limit: int, *, stopping: Callable[[], bool]) -> int:
                return self.remember.fill_vectors(limit, stopping=stopping).embedded

            return fill_memories, self.note_taking.fill_vectors, self.documents.fill_some

        return VectorFilling(fills)

    def fill_in_background(self) -> None:
        """Begin to make the vectors that records lack; turns have a background of their own."""
        self.filling.begin()

    # The end.

    def release(self) -> None:
        """Close files; memory is freed once unreferenced."""
        if "filling" in vars(self):
            self.filling.worker.stop()
            self.filling.worker.stopping.clear()
        if "turns" in vars(self):
            self.turns.release()

    def close(self) -> None:
        """Finish running work and release everything; services that were not created stay so."""
        self.closed = True
        if "filling" in vars(self):
            self.filling.worker.stop()
        for name in _CLOSED:
            if name in vars(self):
                vars(self)[name].close()
