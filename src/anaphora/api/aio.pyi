"""Made by tools/async_stub.py (`make docs`): change `aio.py` or `memory.py`."""

import builtins
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from anaphora.api.memory import Memory, Target
from anaphora.api.workers import Workers
from anaphora.calls.counting import CLOSING_PATIENCE
from anaphora.calls.progress import Progress
from anaphora.container.home import Handler
from anaphora.embed.base import Embedder
from anaphora.features.audit.audit import Audit
from anaphora.features.deep.values import (
    Budget,
    DeepAnswer,
    DeepStep,
    DreamReport,
    Extracted,
    Gap,
    GapStatus,
    Scope,
    TraceSummary,
)
from anaphora.features.documents.values import AddedDocument, Document, DocumentSection
from anaphora.features.mirror.manager import Mirror
from anaphora.features.projects.values import (
    DiaryEntry,
    IndexReport,
    NoteKind,
    Observation,
    Project,
    ProjectMap,
    ProjectPair,
    RecallPackage,
    WarmUp,
)
from anaphora.features.sync.hosted import HostedLogs
from anaphora.features.sync.manager import Sync
from anaphora.ops import Backup, Exported
from anaphora.store.disk import Identity
from anaphora.store.threads.conversations import DEFAULT_RECENT
from anaphora.store.tokens import Tokens
from anaphora.values.conversations import (
    RECALL_BUDGET,
    RECALL_TOP_K,
    Check,
    Health,
    ImportReport,
    NewTurn,
    Recall,
    RecallMode,
    Source,
    Stats,
    Thread,
    ThreadProblem,
    ThreadSummary,
    Turn,
    TurnHit,
    TurnRole,
)
from anaphora.values.memories import (
    Contradiction,
    CoreBlock,
    Forgotten,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    NewMemory,
    Page,
    Reindexed,
    Remembered,
    Verdict,
)
from anaphora.values.models import ModelRole
from anaphora.values.namespaces import DeletedNamespace
from anaphora.values.search import SearchHit
from anaphora.values.sessions import ToolCallHit

class AsyncConversations:
    """The threads of one namespace. Strict: a turn that was not kept raises."""

    def __init__(self, memory: Memory, workers: Workers) -> None: ...
    @property
    def directory(self) -> Path | None:
        """As `ConversationStore.directory`."""

    async def files(self) -> Iterator[tuple[str, Path]]:
        """As `ConversationStore.files`."""

    async def list(self) -> tuple[ThreadSummary, ...]:
        """As `ConversationStore.list`."""

    async def problems(self) -> tuple[ThreadProblem, ...]:
        """As `ConversationStore.problems`."""

    async def path(self, conversation_id: str) -> Path:
        """As `ConversationStore.path`."""

    async def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """As `ConversationStore.read_file`."""

    @property
    def enabled(self) -> bool:
        """As `ConversationStore.enabled`."""

    @property
    def failures(self) -> int:
        """As `ConversationStore.failures`."""

    @property
    def suffix(self) -> str:
        """As `ConversationStore.suffix`."""

    async def append(
        self,
        conversation_id: str,
        role: str,
        text: str,
        *,
        intent_id: str = "",
        ts: datetime | None = None,
        speaker: str | None = None,
    ) -> bool:
        """As `ConversationStore.append`."""

    async def append_user(self, conversation_id: str, text: str) -> bool:
        """As `ConversationStore.append_user`."""

    async def append_assistant(
        self, conversation_id: str, text: str, *, intent_id: str = ""
    ) -> bool:
        """As `ConversationStore.append_assistant`."""

    async def extend(
        self, conversation_id: str, turns: Sequence[NewTurn], *, title: str = ""
    ) -> range:
        """As `ConversationStore.extend`."""

    async def recent(self, conversation_id: str, n: int = DEFAULT_RECENT) -> tuple[Turn, ...]:
        """As `ConversationStore.recent`."""

    async def get(self, conversation_id: str) -> Thread | None:
        """As `ConversationStore.get`."""

    async def delete(self, conversation_id: str) -> bool:
        """As `ConversationStore.delete`."""

    async def redact(self, conversation_id: str, index: int) -> bool:
        """As `ConversationStore.redact`."""

    async def set_title(self, conversation_id: str, title: str) -> bool:
        """As `ConversationStore.set_title`."""

    async def standing_id(self, conversation_id: str) -> str:
        """As `ConversationStore.standing_id`."""

class AsyncMemory:
    """Memory on one home, in one namespace, for programs with an event loop.

    Open it with `async with AsyncMemory.open(...) as memory`, or await `AsyncMemory.open(...)` and
    await `close()`. Safe to share between tasks, and between event loops.
    """

    def __init__(self, memory: Memory, workers: Workers | None = None) -> None: ...
    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        database: str | None = None,
        namespace: str = "default",
        conversations_dir: str | os.PathLike[str] | None = None,
        encrypt: bool | Literal["keychain", "file"] | None = None,
        embedder: str | Embedder | None = None,
        share_model: Literal["running", "start"] | None = None,
        cache_size: int = 256,
        model: str | ModelRole | None = None,
        sub_model: str | ModelRole | None = None,
        clock: Callable[[], datetime] | None = None,
        timezone: str | None = None,
        environ: Mapping[str, str] | None = None,
        warm: bool = True,
    ) -> Opening:
        """As `Memory.open`."""

    @property
    def namespace(self) -> str:
        """The namespace of this view."""

    def scoped(self, namespace: str) -> AsyncMemory:
        """As `Memory.scoped`."""

    @property
    def conversations(self) -> AsyncConversations:
        """As `Memory.conversations`."""

    @staticmethod
    async def restore(
        path: str | os.PathLike[str],
        home: str | os.PathLike[str],
        *,
        database: str | None = None,
        conversations_dir: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> Backup:
        """As `Memory.restore`."""

    def on(self, event: str, handler: Handler) -> None:
        """As `Memory.on`."""

    async def close(self, timeout: float | None = CLOSING_PATIENCE) -> None:
        """As `Memory.close`."""

    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(self, *_: object) -> None: ...
    async def recall_conversation(
        self,
        conversation_id: str | None,
        question: str,
        *,
        top_k: int = RECALL_TOP_K,
        budget: int = RECALL_BUDGET,
        exclude: str | Iterable[str] = (),
        mode: RecallMode = "hybrid",
        since: datetime | None = None,
        until: datetime | None = None,
        speaker: str | None = None,
        role: TurnRole | None = None,
        min_confidence: float | None = None,
        whole: bool = False,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[TurnHit]:
        """As `Memory.recall_conversation`."""

    async def search(
        self,
        question: str,
        *,
        top_k: int = 8,
        budget: int = 2000,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        speaker: str | None = None,
        project: str | None = None,
        tags: Iterable[str] = (),
        directory: str | os.PathLike[str] | None = None,
        exclude: str | Iterable[str] = (),
        min_confidence: float | None = None,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[SearchHit]:
        """As `Memory.search`."""

    async def import_(
        self,
        source: str | os.PathLike[str] | Iterable[Source],
        *,
        format: str | None = None,
        again: bool = False,
        embed: bool = True,
        name: str = "",
        progress: Progress | None = None,
    ) -> ImportReport:
        """As `Memory.import_`."""

    async def tool_calls(self, conversation_id: str) -> tuple[ToolCallHit, ...]:
        """As `Memory.tool_calls`."""

    async def note_session(
        self,
        conversation_ids: Iterable[str],
        *,
        client: str = "",
        directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """As `Memory.note_session`."""

    @property
    def local_time(self) -> datetime:
        """As `Memory.local_time`."""

    @property
    def home(self) -> Path:
        """As `Memory.home`."""

    async def namespaces(self) -> tuple[str, ...]:
        """As `Memory.namespaces`."""

    async def delete_namespace(self, name: str) -> DeletedNamespace:
        """As `Memory.delete_namespace`."""

    async def ready(self, timeout: float | None = None) -> bool:
        """As `Memory.ready`."""

    async def stats(self) -> Stats:
        """As `Memory.stats`."""

    async def doctor(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> tuple[Check, ...]:
        """As `Memory.doctor`."""

    async def health(self) -> Health:
        """As `Memory.health`."""

    @property
    def tokens(self) -> Tokens:
        """As `Memory.tokens`."""

    async def backup(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> Backup:
        """As `Memory.backup`."""

    async def export(
        self, path: Target, *, masked: bool = False, progress: Progress | None = None
    ) -> Exported:
        """As `Memory.export`."""

    async def remember(
        self,
        text: str,
        *,
        type: MemoryType = "semantic",
        path: str | None = None,
        payload: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
        category: str | None = None,
        source: str | None = None,
        conversation_id: str | None = None,
        turn_index: int | None = None,
        parent: str | None = None,
        supersedes: str | None = None,
        expires_at: datetime | None = None,
        created_at: datetime | None = None,
        keep_secret: bool = False,
    ) -> Remembered:
        """As `Memory.remember`."""

    async def remember_many(
        self, items: Iterable[NewMemory | str | Mapping[str, Any]], progress: Progress | None = None
    ) -> builtins.list[Remembered]:
        """As `Memory.remember_many`."""

    async def recall(
        self,
        question: str,
        *,
        top_k: int = 3,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        mode: RecallMode = "hybrid",
        as_of: datetime | None = None,
        explain: bool = False,
        min_confidence: float | None = None,
        read: int | None = None,
        timeout: float | None = None,
    ) -> Recall[MemoryHit]:
        """As `Memory.recall`."""

    async def get(self, id: str) -> MemoryRecord:
        """As `Memory.get`."""

    async def list(
        self, filters: Mapping[str, Any] | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[MemoryRecord]:
        """As `Memory.list`."""

    async def history(self, path: str) -> tuple[MemoryRecord, ...]:
        """As `Memory.history`."""

    async def update(self, id: str, **changes: Any) -> Remembered:
        """As `Memory.update`."""

    async def contradictions(
        self, *, settled: bool = False, limit: int = 50
    ) -> tuple[Contradiction, ...]:
        """As `Memory.contradictions`."""

    async def settle_contradiction(self, id: str, other_id: str, verdict: Verdict) -> Contradiction:
        """As `Memory.settle_contradiction`."""

    async def reopen_contradiction(self, id: str, other_id: str) -> Contradiction:
        """As `Memory.reopen_contradiction`."""

    async def forget(
        self,
        id: str | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        soft: bool = False,
        undoable: bool = False,
        clean: bool = True,
        dry_run: bool = False,
    ) -> Forgotten:
        """As `Memory.forget`."""

    async def undo_forget(self, id: str) -> tuple[str, ...]:
        """As `Memory.undo_forget`."""

    async def redact_memories(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """As `Memory.redact_memories`."""

    async def resolve_id(
        self, short: str, kind: Literal["any", "memory", "conversation"] = "any"
    ) -> str:
        """As `Memory.resolve_id`."""

    async def reindex(
        self, embedder: str | None = None, *, links: bool = True, progress: Progress | None = None
    ) -> Reindexed:
        """As `Memory.reindex`."""

    async def index_project(
        self,
        root: str | os.PathLike[str],
        *,
        name: str | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> IndexReport:
        """As `Memory.index_project`."""

    async def projects(self) -> tuple[Project, ...]:
        """As `Memory.projects`."""

    async def project_map(self, project: str, *, within: str | None = None) -> ProjectMap:
        """As `Memory.project_map`."""

    async def same_project(self, project: str, other: str, *, same: bool = True) -> ProjectPair:
        """As `Memory.same_project`."""

    async def remove_project(self, project: str) -> int:
        """As `Memory.remove_project`."""

    async def observe(
        self,
        text: str,
        *,
        kind: NoteKind = "note",
        importance: int = 3,
        tags: Iterable[str] = (),
        source: str | None = None,
        supersedes: str | None = None,
        project: str | None = None,
    ) -> Observation:
        """As `Memory.observe`."""

    async def notes(
        self, project: str | None = None, *, limit: int = 50
    ) -> tuple[Observation, ...]:
        """As `Memory.notes`."""

    async def diary(self, project: str | None = None, *, limit: int = 50) -> tuple[DiaryEntry, ...]:
        """As `Memory.diary`."""

    async def write_diary(
        self,
        summary: str,
        *,
        subject: str | None = None,
        tags: Iterable[str] = (),
        project: str | None = None,
    ) -> DiaryEntry:
        """As `Memory.write_diary`."""

    async def recall_context(
        self,
        focus: str | Sequence[str],
        *,
        project: str | None = None,
        budget: int = 2000,
        include_sources: bool = False,
        timeout: float | None = None,
    ) -> RecallPackage:
        """As `Memory.recall_context`."""

    async def warm_up(
        self,
        topic: str | None = None,
        *,
        project: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        shape: bool = True,
        budget: int = 2000,
    ) -> WarmUp:
        """As `Memory.warm_up`."""

    async def add_document(
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        name: str | None = None,
        title: str | None = None,
        date: datetime | None = None,
        origin: str | None = None,
        tags: Iterable[str] = (),
        keep_file: bool | None = None,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> AddedDocument:
        """As `Memory.add_document`."""

    async def documents(self, *, limit: int = 50, history: bool = False) -> tuple[Document, ...]:
        """As `Memory.documents`."""

    async def document(self, id: str) -> Document:
        """As `Memory.document`."""

    async def document_sections(self, id: str) -> tuple[DocumentSection, ...]:
        """As `Memory.document_sections`."""

    async def document_file(self, id: str) -> bytes:
        """As `Memory.document_file`."""

    async def document_history(self, name: str) -> tuple[Document, ...]:
        """As `Memory.document_history`."""

    async def deep_recall(
        self,
        question: str,
        *,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        include_memory: bool = True,
        budget: Budget | None = None,
        on_step: Callable[[DeepStep], None] | None = None,
    ) -> DeepAnswer:
        """As `Memory.deep_recall`."""

    async def gaps(self, status: GapStatus | None = "open") -> tuple[Gap, ...]:
        """As `Memory.gaps`."""

    async def extract(self, conversation_id: str, *, budget: Budget | None = None) -> Extracted:
        """As `Memory.extract`."""

    async def dream(self, *, model: bool = True, budget: Budget | None = None) -> DreamReport:
        """As `Memory.dream`."""

    async def end_session(self, conversation_id: str) -> int:
        """As `Memory.end_session`."""

    async def run_jobs(self) -> DreamReport:
        """As `Memory.run_jobs`."""

    async def traces(self, limit: int = 20) -> tuple[TraceSummary, ...]:
        """As `Memory.traces`."""

    async def trace(self, id: str) -> DeepAnswer:
        """As `Memory.trace`."""

    async def core_block(self, *, budget: int | None = None) -> CoreBlock:
        """As `Memory.core_block`."""

    async def pin(self, id: str, position: int | None = None) -> str:
        """As `Memory.pin`."""

    async def unpin(self, id: str) -> str:
        """As `Memory.unpin`."""

    @property
    def audit(self) -> Audit:
        """As `Memory.audit`."""

    @property
    def sync(self) -> Sync:
        """As `Memory.sync`."""

    @property
    def hosted_logs(self) -> HostedLogs:
        """As `Memory.hosted_logs`."""

    @property
    def mirror(self) -> Mirror:
        """As `Memory.mirror`."""

class Opening:
    """A memory that is being opened: await it, or use it as an async context manager."""

    def __init__(self, workers: Workers, open_memory: Callable[[], Memory]) -> None: ...
    def __await__(self) -> Generator[Any, None, AsyncMemory]: ...
    async def __aenter__(self) -> AsyncMemory: ...
    async def __aexit__(self, *_: object) -> None: ...
