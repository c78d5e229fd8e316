"""Composition: what a home and each of its namespaces are made of, wired once.

In: settings and the caller's choices. Out: a `Wiring` that opens the parts of a namespace when
they are first used and lets go of those that were not used for long. It holds no logic of recall
or storage; the facade in `memory.py` is its only user.
"""

from __future__ import annotations

# Not when it is first needed: Python lets nobody import it once the main thread has ended.
import concurrent.futures.thread  # noqa: F401
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from anaphora.core.calls import Calls
from anaphora.core.config import Settings, remember_embedder
from anaphora.errors import Closed

if TYPE_CHECKING:
    from anaphora.deep.kept.forgetting import DeepForgetting
    from anaphora.deep.parts import DeepParts
    from anaphora.deep.tools import DeepTools
    from anaphora.embed.service import EmbedderService
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.memories import Forget, Remember
    from anaphora.ops.namespaces import Parts
    from anaphora.project_parts import ProjectParts
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.surviving import Survivors
    from anaphora.store.db.engine import Database
    from anaphora.store.home.sealing import Sealing
    from anaphora.store.projects.notes import Notes
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.threads.conversations import Conversations
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sidecar import Sidecar
    from anaphora.store.threads.sql_store import SqlConversationStore

PartT = TypeVar("PartT")
Handler = Callable[[Any], None]
Progress = Callable[[str, int, int], None]

_log = logging.getLogger("anaphora")

# Open namespaces hold files and vectors; a service may have ten thousand of them.
OPEN_NAMESPACES = 64


class Once(Generic[PartT]):
    """Makes a part with its first use, once, whichever thread comes first."""

    def __init__(self, make: Callable[[], PartT]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self.made: PartT | None = None

    def __call__(self) -> PartT:
        """The part, made at the first call."""
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made


@dataclass(frozen=True, slots=True)
class Namespace:
    """What one namespace works with."""

    conversations: ConversationStore | SqlConversationStore
    sidecar: Sidecar
    turns: TurnIndex
    recall_turns: ConversationRecall
    records: Records
    vectors: RecordVectors
    memories: MemoryIndex
    recall_memories: MemoryRecall
    remember: Remember
    forget: Forget
    deep: Callable[[], DeepParts]
    projects: Once[ProjectParts]
    survivors: Survivors

    def release(self) -> None:
        """Let go of files; what is held in memory goes when nobody uses it any more."""
        self.turns.release()

    def close(self) -> None:
        """Finish what is under way and let go for good."""
        self.turns.close()
        self.memories.close()
        if self.projects.made is not None:
            self.projects.made.close()


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What `reindex` did: turns and memories that got vectors of `embedder`, and those left.

    `namespaces` is how many were gone through.
    """

    embedder: str
    turns: int
    memories: int
    left: int
    namespaces: int = 1

    def and_more(self, more: Reindexed) -> Reindexed:
        """The sum of what was done here and there."""
        return Reindexed(
            self.embedder,
            self.turns + more.turns,
            self.memories + more.memories,
            self.left + more.left,
            self.namespaces + more.namespaces,
        )


@dataclass(slots=True)
class Wiring:
    """What all views on one home share. Safe to share between threads."""

    settings: Settings
    clock: Callable[[], datetime]
    embedder: EmbedderService
    truth: Database
    sealing: Sealing
    ids: Callable[[], str]
    handlers: dict[str, list[Handler]]
    tools: DeepTools | None = None
    calls: Calls = field(default_factory=Calls)
    _open: dict[str, Namespace] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _closed: bool = False

    @property
    def parts(self) -> Parts:
        """The home as `care` sees it."""
        from anaphora.ops.namespaces import Parts
        from anaphora.store.home.sealing import Home

        home = Home(self.settings.home, self.settings.conversations, self.settings.database)
        return Parts(home, self.sealing, self.truth)

    def namespace(self, name: str) -> Namespace:
        """The parts of a namespace, opened with their first use. Raises Closed."""
        with self._lock:
            if self._closed:
                raise Closed
            found = self._open.pop(name, None) or _opened(self, name)
            # The last in the dict is the one used last.
            self._open[name] = found
            for unused in list(self._open)[:-OPEN_NAMESPACES]:
                self._open.pop(unused).release()
            return found

    def tell(self, event: str, value: object) -> None:
        """Call everybody who wants to know of an event. One that fails is logged, and no more:

        what was to be told of has happened, and the caller of the call did not ask to be told.
        """
        for handler in tuple(self.handlers[event]):
            try:
                handler(value)
            except Exception:  # noqa: BLE001 - whatever a listener raises is its own trouble
                _log.exception("a listener to %r failed: %r", event, handler)

    def reindex(self, name: str, embedder: str | None, progress: Progress | None) -> Reindexed:
        """Make the vectors that are missing, of this embedder or another; see `Memory.reindex`."""
        if embedder is None:
            return _reindexed(self.namespace(name), self.embedder.name, progress)
        from anaphora.embed.service import EmbedderService, spec_for

        service = EmbedderService(spec_for(embedder), cache_size=0)
        # The embedder is the whole home's: a namespace left behind would have words alone.
        names = (name, *(one for one in self.parts.namespaces() if one != name))
        done = Reindexed(service.name, 0, 0, 0, 0)
        try:
            for one in names:
                other = _opened(replace(self, embedder=service), one)
                try:
                    told = progress if len(names) == 1 else _labelled(progress, one)
                    done = done.and_more(_reindexed(other, service.name, told))
                finally:
                    other.close()
        finally:
            service.close()
        remember_embedder(self.settings, embedder)
        return done

    def close(self, seconds: float | None) -> bool:
        """Wait for calls, at most so many seconds, and close all; False when that was done before.

        What still runs then ends in `Closed`.
        """
        if not self.calls.finish(seconds):
            _log.warning("closing a memory while calls to it are still under way")
        with self._lock:
            if self._closed:
                return False
            self._closed = True
        for namespace in self._open.values():
            namespace.close()
        if self.tools is not None:
            self.tools.close()
        self.embedder.close()
        self.truth.close()
        return True


def _labelled(progress: Progress | None, namespace: str) -> Progress | None:
    """Progress that says of which namespace it speaks."""
    if progress is None:
        return None
    return lambda label, done, total: progress(f"{namespace}: {label}", done, total)


def _reindexed(parts: Namespace, embedder: str, progress: Progress | None) -> Reindexed:
    def told(label: str) -> Callable[[int, int], None] | None:
        return None if progress is None else lambda done, total: progress(label, done, total)

    turns = parts.turns.sync(embed="all", progress=told("turns"))
    memories = parts.remember.fill_vectors(progress=told("memories"))
    parts.memories.sync()
    parts.memories.settle()
    parts.projects().fill_vectors()
    return Reindexed(embedder, turns.embedded, memories.embedded, turns.pending + memories.failed)


def _opened(wiring: Wiring, name: str) -> Namespace:
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.turns.index import TurnIndex
    from anaphora.ingest.memories import Forget, Remember
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.surviving import Survivors
    from anaphora.store.deep_rows import DeepRows
    from anaphora.store.home.opening import open_conversations
    from anaphora.store.home.sealing import DEFAULT_NAMESPACE, folder_name
    from anaphora.store.projects.store import holds_any
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.threads.conversations import WRITES
    from anaphora.store.threads.sidecar import Sidecar

    settings, truth, embedder, sealing = (
        wiring.settings,
        wiring.truth,
        wiring.embedder,
        wiring.sealing,
    )
    folder = settings.conversations
    if name != DEFAULT_NAMESPACE:
        folder = settings.home / "namespaces" / folder_name(name) / "conversations"
    place: Path = settings.home / "index" / folder_name(name)
    hidden = sealing.index(name)

    sidecar = Sidecar(truth, name, sealing.rows)

    # What is deleted or redacted leaves the index's files at once, not with the next question.
    def removed(conversation_id: str) -> None:
        turns.sync(conversation_id, embed="none")
        forgetting().words_gone(conversation_id)

    conversations = open_conversations(
        truth,
        sidecar,
        sealing,
        # Where truth is on a server, threads are there too.
        folder if truth.path is not None else None,
        clock=wiring.clock,
        on_removed=removed,
    )
    wiring.calls.count(conversations, WRITES)
    # LanceDB would keep vectors in clear.
    cap = None if sealing.sealed else settings.exact_cap
    turns = TurnIndex(place, conversations, sidecar, embedder, sealer=hidden, cap=cap)
    records = Records(truth, name, sealing.rows)
    vectors = RecordVectors(truth, name, sealing.rows)
    memories = MemoryIndex(
        place / "memories",
        records,
        vectors,
        (embedder.name, embedder.dimensions),
        cap=cap,
        sealer=hidden,
    )
    recall_turns = ConversationRecall(conversations, turns, embedder, wiring.clock)
    remember = Remember(
        records, vectors, embedder, memories.neighbours, clock=wiring.clock, ids=wiring.ids
    )
    recall_memories = MemoryRecall(
        records,
        memories,
        embedder,
        wiring.clock,
        settings.half_lives,
        fill=remember.fill_vectors,
    )
    rows = DeepRows(truth, name, sealing.rows)

    @Once
    def projects() -> ProjectParts:
        from anaphora.project_parts import open_projects

        return open_projects(
            truth,
            name,
            place / "context",
            embedder,
            rows=sealing.rows,
            hidden=hidden,
            clock=wiring.clock,
            ids=wiring.ids,
        )

    @Once
    def deep() -> DeepParts:
        from anaphora.deep.evidence.scoped import NamespaceEvidence
        from anaphora.deep.parts import open_deep
        from anaphora.deep.tools import DeepTools

        return open_deep(
            NamespaceEvidence(
                conversations, turns, recall_turns, records, recall_memories, wiring.clock
            ),
            rows,
            wiring.tools or DeepTools(settings),
            remember,
            (records, vectors, memories, embedder.name),
            clock=wiring.clock,
            ids=wiring.ids,
        )

    @Once
    def forgetting() -> DeepForgetting:
        from anaphora.deep.kept.forgetting import DeepForgetting

        return DeepForgetting(rows, records, lambda: conversations, lambda: _settled(memories))

    def noted() -> tuple[SectionIndex, Notes] | None:
        # The index of sections is opened only where there is anything for it.
        if not holds_any(truth, name):
            return None
        return projects().sections, projects().notes

    survivors = Survivors(
        turns, memories, records, noted, lambda marks: forgetting().holding(marks), wiring.clock
    )

    return Namespace(
        conversations=conversations,
        sidecar=sidecar,
        turns=turns,
        recall_turns=recall_turns,
        records=records,
        vectors=vectors,
        memories=memories,
        recall_memories=recall_memories,
        remember=remember,
        forget=Forget(
            records,
            clock=wiring.clock,
            survivors=survivors.of,
            has_turn=lambda of, index: _has_turn(conversations, of, index),
            derived=lambda work, ids: forgetting().derived(work, ids),
            on_gone=lambda work, gone, soft: forgetting().memories_gone(work, gone, soft),
        ),
        deep=deep,
        projects=projects,
        survivors=survivors,
    )


def _settled(memories: MemoryIndex) -> None:
    """Let what was forgotten leave the index's files too."""
    memories.sync()
    memories.settle()


def _has_turn(conversations: Conversations, of: str, index: int) -> bool:
    thread = conversations.get(of)
    return thread is not None and index < len(thread.turns)
