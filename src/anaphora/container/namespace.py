"""A namespace: its services, and which of them needs which.

Every service is made when it is first used. Features have services of their own (`feature`); some
get a callback into another one, whose type is named where it is called: docs/architecture.md lists
these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from anaphora.container.conversations import ConversationServices
from anaphora.container.feature import FeatureServices, registered
from anaphora.container.memories import MemoryServices
from anaphora.container.services import service
from anaphora.errors import Closed, FeatureLeftOut
from anaphora.index.maintenance import Background

if TYPE_CHECKING:
    from pathlib import Path

    from anaphora.calls.progress import ProgressCount
    from anaphora.container.filling import VectorFilling
    from anaphora.container.home import Container
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.ingest.links import StatementLinks, Statements
    from anaphora.recall.everything import EverythingRecall
    from anaphora.recall.links import ToldStatement
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.short_ids import ShortIds
    from anaphora.recall.survivors import Survivors
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Database
    from anaphora.store.jobs import JobQueue
    from anaphora.store.records.forgetting import ForgottenRecords
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.table_rows import TableRows
    from anaphora.values.actions import AuditAction
    from anaphora.values.memories import MemoryRecord

_OPENING: Final = 1.0
"""Seconds from the opening of a namespace to the work that an earlier process has left."""

FeatureT = TypeVar("FeatureT", bound=FeatureServices)


class NamespaceServices:
    """What one namespace of a home works with. Safe to share between threads.

    Those for conversations and for memories are groups of their own: `conversation` and `memory`.
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
        self._opening = Background("anaphora-opening")
        self.locks: dict[str, threading.RLock] = {}
        self.conversation = ConversationServices(self)
        self.memory = MemoryServices(self)

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
    def exact_cap(self) -> int | None:
        """How many vectors are scanned exactly; None: always all."""
        # LanceDB would keep vectors in clear.
        return None if self.sealing.sealed else self.container.settings.exact_cap

    @property
    def vectors_of(self) -> tuple[str, int]:
        """The name and the dimensions of the embedder."""
        return self.embedder.name, self.embedder.dimensions

    # Stores.

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

    def record_index(
        self,
        folder: str,
        records: Records,
        title_of: Callable[[MemoryRecord], str] | None = None,
    ) -> MemoryIndex:
        """An index of records in a folder of their own."""
        from anaphora.index.memories.index import MemoryIndex
        from anaphora.store.records.titles import record_title
        from anaphora.store.records.vectors import RecordVectors

        return MemoryIndex(
            self.index_folder / folder,
            records,
            RecordVectors(self.truth, self.namespace, self.rows_sealer, kinds=records.kinds),
            self.vectors_of,
            cap=self.exact_cap,
            sealer=self.sealing.index(self.namespace),
            title_of=title_of or record_title,
        )

    # How things come in, and go.

    @service
    def survivors(self) -> Survivors:
        """Finds what still holds the words of what was forgotten."""
        from anaphora.recall.survivors import Survivors

        calls = self.conversation.tool_calls
        return Survivors(
            self.conversation.turn_index,
            self.memory.index,
            self.memory.records,
            # The index of tool calls is opened only if there are any.
            lambda: (calls, self.conversation.tool_call_index) if calls.holds_any() else None,
            lambda: tuple(feature.find_survivors for feature in self.features),
        )

    def purge(self) -> None:
        """Remove forgotten text from the files of all indexes, now; they are made again behind."""
        self.memory.index.purge()
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
        self.link_in_background()

    def after_removal(self) -> None:
        """Tell features that something was forgotten for good."""
        for feature in self.features:
            feature.after_removal()
        self.link_in_background()

    # How things come out.

    def evidence(self) -> Mapping[str, MemoryRecall]:
        """The lanes of records that features add to conversations and memories, by kind."""
        return {
            kind: lane for feature in self.features for kind, lane in feature.evidence().items()
        }

    @service
    def short_ids(self) -> ShortIds:
        """Short ids, as people and agents type them."""
        from anaphora.recall.short_ids import ShortIds

        return ShortIds(
            self.memory.records,
            tuple(records for feature in self.features for records in feature.record_stores()),
            lambda: self.conversation.threads,
        )

    def find_replacing(self, references: Collection[str]) -> dict[str, ToldStatement]:
        """What replaced turns, memories or notes, by their references, as recall marks them.

        What holds is not among them.
        """
        from anaphora.recall.links import find_newest

        turns = self.conversation.recall_turns
        newest = turns.find_due_replacing(references) | find_newest(self.links, references)
        newer = set(newest.values())
        statements = [*turns.told(newer), *self.memory.recall_memories_and_notes.told(newer)]
        by_reference = {statement.reference: statement for statement in statements}
        return {older: by_reference[last] for older, last in newest.items() if last in by_reference}

    @service
    def recall_everything(self) -> EverythingRecall:
        """All lanes but the deep one."""
        from anaphora.recall.everything import EverythingRecall
        from anaphora.recall.memory_lane import memory_lane
        from anaphora.recall.tool_calls import call_lane
        from anaphora.recall.turn_lane import turn_lane

        memories = self.memory.recall_memories_and_notes
        places = self.conversation.session_places
        lanes = (
            memory_lane(memories),
            turn_lane(self.conversation.recall_turns, places),
            *(lane for feature in self.features for lane in feature.lanes()),
            call_lane(self.conversation.recall_tool_calls),
        )
        return EverythingRecall(lanes, memories, places)

    @service
    def filling(self) -> VectorFilling:
        """The background that makes vectors; turns have one of their own."""
        from anaphora.container.filling import VectorFilling

        def fill_memories(limit: int, *, stopping: Callable[[], bool]) -> int:
            return self.memory.writer.fill_vectors(limit, stopping=stopping).embedded

        return VectorFilling(
            lambda: (
                fill_memories,
                *(fill for feature in self.features for fill in feature.fills()),
            ),
            self.link_in_background,
        )

    def fill_in_background(self) -> None:
        """Begin to make the vectors that records lack; turns have a background of their own."""
        self.filling.begin()

    # Links.

    @service
    def links(self) -> StatementLinks:
        """What statements make of earlier ones."""
        from anaphora.ingest.links import RecordStatements, StatementLinks, TurnStatements
        from anaphora.store.verdicts import StoredVerdicts

        def look() -> list[Statements]:
            now = self.clock()
            notes = (feature.notes() for feature in self.features)
            return [
                TurnStatements(self.conversation.turn_index),
                RecordStatements(self.memory.records, self.memory.index, now),
                *(RecordStatements(lane.records, lane.index, now) for lane in notes if lane),
            ]

        verdicts = StoredVerdicts(self.truth, self.namespace, self.rows_sealer)
        judge = self.container.judge
        return StatementLinks(
            *(verdicts, judge, look, self.index_folder),
            *(self._find_both_hold, self.memory.contradictions.propose),
            tell=partial(self.container.tell, "contradiction"),
            fill=lambda: self.conversation.turn_index.fill(),  # noqa: PLW0108
        )

    def _find_both_hold(self, record_ids: Collection[str]) -> list[tuple[str, str]]:
        """The pairs of which one is among these, of which people said that both hold."""
        links = self.memory.records.links(record_ids, ("both_hold",))
        return [(link.record_id, link.other_id) for link in links]

    def link_in_background(self) -> None:
        """Begin to link what was written."""
        if not self.closed and not self._stands_in:
            with suppress(Closed):
                self.links.begin()

    def finish_links(
        self, timeout: float | None = None, progress: ProgressCount | None = None
    ) -> bool:
        """Link all that can be linked now; False on time-out."""
        return self._stands_in or self.links.finish(timeout, progress)

    @property
    def _stands_in(self) -> bool:
        """Whether its embedder stands in for another one: links need the vectors of that."""
        return self.container.stand_in is self.embedder

    def link_once_open(self) -> None:
        """The same in a moment: what an earlier process has left, unless this one ends soon."""

        def link() -> None:
            if not self._opening.stopping.wait(_OPENING):
                self.link_in_background()
                self.container.clean_in_background()

        self._opening.begin(link)

    # The end.

    def release(self) -> None:
        """Close files; memory is freed once unreferenced."""
        if "links" in vars(self):
            self.links.release()
        if "filling" in vars(self):
            self.filling.worker.stop()
            self.filling.worker.stopping.clear()
        if "turn_index" in vars(self.conversation):
            self.conversation.turn_index.release()

    def close(self) -> None:
        """Finish running work and release everything; services that were not created stay so."""
        self.closed = True
        self._opening.stop()
        if "filling" in vars(self):
            self.filling.worker.stop()
        if "links" in vars(self):
            self.links.close()
        self.conversation.close_created("turn_index", "tool_call_index")
        self.memory.close_created("index")
        for feature in vars(self).get("features", ()):
            feature.close()
