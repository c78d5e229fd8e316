"""A namespace: its services, and which of them needs which.

Every service is made when it is first used. Features have services of their own (`feature`); some
get a callback into another one, whose type is named where it is called: docs/architecture.md lists
these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from anaphora.container.feature import FeatureServices, registered
from anaphora.container.services import service
from anaphora.errors import FeatureLeftOut
from anaphora.store.records.titles import record_title
from anaphora.store.threads.gojson import REDACTED

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.container.filling import VectorFilling
    from anaphora.container.home import Container
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.contradictions import Contradictions
    from anaphora.ingest.memories import MemoryEraser, MemoryWriter
    from anaphora.ingest.sessions import SessionWriter
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.everything import EverythingRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.places import SessionPlaces
    from anaphora.recall.short_ids import ShortIds
    from anaphora.recall.survivors import Survivors
    from anaphora.recall.tool_calls import ToolCallRecall
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Database
    from anaphora.store.jobs import JobQueue
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.table_rows import TableRows
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore
    from anaphora.values.actions import AuditAction
    from anaphora.values.memories import MemoryRecord

FeatureT = TypeVar("FeatureT", bound=FeatureServices)

_CLOSED = ("turns", "memories", "call_index")


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

    def lock_of(self, name: str) -> threading.RLock:
        """The lock under which one service is made."""
        return self._locks.setdefault(name, threading.RLock())

    # Features.

    @cached_property
    def features(self) -> tuple[FeatureServices, ...]:
        """What every registered feature has in this namespace."""
        makers = (feature.services for feature in registered())
        return tuple(make(self) for make in makers if make is not None)

    def feature(self, kind: type[FeatureT]) -> FeatureT:
        """The services of one feature, for its own code. Raises `FeatureLeftOut`."""
        for services in self.features:
            if type(services) is kind:
                return services
        raise FeatureLeftOut(kind.name)

    # Where things lie, and how they are sealed.

    @property
    def folder(self) -> Path:
        """Where its threads lie."""
        return self.container.home.folder(self.namespace)

    @property
    def index_folder(self) -> Path:
        """Where its indexes lie."""
        from anaphora.store.home.sealing import folder_name

        return self.container.home.root / "index" / folder_name(self.namespace)

    @property
    def rows_sealer(self) -> Sealer:
        """Encrypts and decrypts its rows."""
        return self.sealing.rows

    @property
    def _exact_cap(self) -> int | None:
        # LanceDB would keep vectors in clear.
        return None if self.sealing.sealed else self.container.settings.exact_cap

    @property
    def vectors_of(self) -> tuple[str, int]:
        """The name and the dimensions of the embedder."""
        return self.embedder.name, self.embedder.dimensions

    # Stores.

    @service
    def sidecar(self) -> Sidecar:
        """What thread files have no place for."""
        from anaphora.store.threads.sidecar import Sidecar

        return Sidecar(self.truth, self.namespace, self.rows_sealer)

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
        hooks = WriteHooks(self.container.calls.under_way, self.after_turns)
        return surround_writes(store, hooks)

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
        for feature in self.features:
            feature.forget_conversation(conversation_id)
        self.after_removal()

    @service
    def records(self) -> Records:
        """Lasting memories."""
        from anaphora.store.records.store import Records

        return Records(self.truth, self.namespace, self.rows_sealer)

    @service
    def vectors(self) -> RecordVectors:
        """The vectors of memories."""
        from anaphora.store.records.vectors import RecordVectors

        return RecordVectors(self.truth, self.namespace, self.rows_sealer)

    @service
    def table_rows(self) -> TableRows:
        """Rows of tables that features give a meaning."""
        from anaphora.store.table_rows import TableRows

        return TableRows(self.truth, self.namespace, self.rows_sealer)

    @service
    def jobs(self) -> JobQueue:
        """Work that waits: of ended sessions, and erasures after their grace period."""
        from anaphora.store.jobs import JobQueue

        return JobQueue(self.table_rows, clock=self.clock, ids=self.ids)

    # Indexes.

    @service
    def turns(self) -> TurnIndex:
        """The index of turns."""
        from anaphora.index.turns.index import TurnIndex

        return TurnIndex(
            self.index_folder,
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
            self.index_folder / "memories",
            self.records,
            self.vectors,
            self.vectors_of,
            cap=self._exact_cap,
            sealer=self.sealing.index(self.namespace),
        )

    def record_index(
        self,
        folder: str,
        records: Records,
        title_of: Callable[[MemoryRecord], str] = record_title,
    ) -> MemoryIndex:
        """An index of records in a folder of their own."""
        from anaphora.index.memories.index import MemoryIndex
        from anaphora.store.records.vectors import RecordVectors

        return MemoryIndex(
            self.index_folder / folder,
            records,
            RecordVectors(self.truth, self.namespace, self.rows_sealer, kinds=records.kinds),
            self.vectors_of,
            cap=self._exact_cap,
            sealer=self.sealing.index(self.namespace),
            title_of=title_of,
        )

    @service
    def calls(self) -> Records:
        """Lines about what agents did with their tools."""
        from anaphora.store.records.rows import TOOL_CALL
        from anaphora.store.records.store import Records

        return Records(self.truth, self.namespace, self.rows_sealer, kinds=(TOOL_CALL,))

    @service
    def call_index(self) -> MemoryIndex:
        """The words of those."""
        return self.record_index("tool_calls", self.calls, lambda _: "")

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

    @service
    def contradictions(self) -> Contradictions:
        """Memories that seem to contradict each other."""
        from anaphora.ingest.contradictions import Contradictions

        return Contradictions(self.records, self.clock)

    @service
    def survivors(self) -> Survivors:
        """Finds what still holds the words of what was forgotten."""
        from anaphora.recall.survivors import Survivors

        return Survivors(
            self.turns,
            self.memories,
            self.records,
            # The index of tool calls is opened only if there are any.
            lambda: (self.calls, self.call_index) if len(self.calls.list(limit=1)) else None,
            lambda: tuple(feature.find_survivors for feature in self.features),
        )

    def settle_memories(self) -> None:
        """Remove forgotten text from the index's files, too."""
        self.memories.sync()
        self.memories.settle()

    def purge(self) -> None:
        """Remove forgotten text from the files of all indexes, now; they are made again behind."""
        self.memories.purge()
        for feature in self.features:
            feature.purge()

    def list_derived(self, work: RecordTransaction, record_ids: Sequence[str]) -> list[str]:
        """The memories derived from these, which are forgotten with them."""
        return [
            derived_id
            for feature in self.features
            for derived_id in feature.list_derived(work, record_ids)
        ]

    def forget_derived(self, work: RecordTransaction, gone: ForgottenRecords, soft: bool) -> None:
        """Delete what features made of forgotten records, in their transaction."""
        for feature in self.features:
            feature.forget_derived(work, gone, soft)

    def after_turns(self, action: AuditAction, conversation_id: str, count: int) -> None:
        """Tell features that turns of a conversation were changed."""
        for feature in self.features:
            feature.after_turns(action, conversation_id, count)

    def after_removal(self) -> None:
        """Tell features that something was forgotten for good."""
        for feature in self.features:
            feature.after_removal()

    @service
    def forget(self) -> MemoryEraser:
        """Forgets memories."""
        from anaphora.ingest.memories import MemoryEraser

        return MemoryEraser(
            self.records,
            clock=self.clock,
            survivors=self.survivors.of,
            has_turn=self._has_turn,
            derived=self.list_derived,
            on_gone=self.forget_derived,
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
        """The memory lane over memories, and over the notes of features."""
        notes = next((notes for feature in self.features if (notes := feature.notes())), None)

        def fill(limit: int) -> None:
            self._fill_memories(limit)
            for feature in self.features:
                self.filling.in_call(feature.fill_in_call, limit)

        return replace(self.recall_memories, notes=notes, fill=fill)

    def evidence(self) -> Mapping[str, MemoryRecall]:
        """The lanes of records that features add to conversations and memories, by kind."""
        return {
            kind: lane for feature in self.features for kind, lane in feature.evidence().items()
        }

    @service
    def places(self) -> SessionPlaces:
        """Where sessions took place."""
        from anaphora.recall.places import SessionPlaces

        return SessionPlaces(self.sidecar)

    @service
    def ids_known(self) -> ShortIds:
        """Short ids, as people and agents type them."""
        from anaphora.recall.short_ids import ShortIds

        return ShortIds(
            self.records,
            tuple(records for feature in self.features for records in feature.record_stores()),
            lambda: self.conversations,
        )

    @service
    def recall_calls(self) -> ToolCallRecall:
        """The lane of tool calls."""
        from anaphora.recall.tool_calls import ToolCallRecall

        return ToolCallRecall(self.calls, self.call_index, self.clock)

    @service
    def recall_everything(self) -> EverythingRecall:
        """All lanes but the deep one."""
        from anaphora.recall.everything import EverythingRecall
        from anaphora.recall.memory_lane import memory_lane
        from anaphora.recall.tool_calls import call_lane
        from anaphora.recall.turn_lane import turn_lane

        lanes = (
            memory_lane(self.recall_kept),
            turn_lane(self.recall_turns, self.places),
            *(lane for feature in self.features for lane in feature.lanes()),
            call_lane(self.recall_calls),
        )
        return EverythingRecall(lanes, self.recall_kept, self.places)

    @service
    def filling(self) -> VectorFilling:
        """The background that makes vectors; turns have one of their own."""
        from anaphora.container.filling import VectorFilling

        def fill_memories(limit: int, *, stopping: Callable[[], bool]) -> int:
            return self.remember.fill_vectors(limit, stopping=stopping).embedded

        return VectorFilling(
            lambda: (fill_memories, *(fill for one in self.features for fill in one.fills()))
        )

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
        for feature in vars(self).get("features", ()):
            feature.close()
