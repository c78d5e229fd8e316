"""`AsyncMemory`: the facade for programs with an event loop. Every call runs in a worker thread.

In: the arguments of `Memory`'s methods. Out: the same values, awaited. It holds no logic of its
own: `tests/test_async_parity.py` holds it to `Memory`, method by method. Handlers and progress
callbacks run in the event loop, in the order of what they tell. A call that is cancelled before it
began is not made; one that has begun is finished in its thread, so that nothing is half-done, and
`close` waits for it.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anaphora.api.aio_conversations import AsyncConversations
from anaphora.api.aio_deep import AsyncDeepQuestions
from anaphora.api.aio_projects import AsyncProjectMemories
from anaphora.api.aio_workers import Workers, in_loop
from anaphora.api.deep import DeepQuestions
from anaphora.api.memory import Memory, Source, Target
from anaphora.api.projects import ProjectMemories
from anaphora.core.arguments import checks_arguments
from anaphora.core.calls import CLOSING_PATIENCE
from anaphora.home import Handler, Progress, Reindexed
from anaphora.values.conversations import Check, ImportReport, Recall, RecallMode, Stats, TurnHit
from anaphora.values.memories import (
    Forgotten,
    MemoryHit,
    MemoryRecord,
    MemoryType,
    NewMemory,
    Page,
    Remembered,
)

if TYPE_CHECKING:
    from anaphora.deep.models.base import ModelRole
    from anaphora.embed.base import Embedder
    from anaphora.ops import Backup, Exported
    from anaphora.ops.health import Health
    from anaphora.store.tokens import Tokens

__all__ = ["AsyncConversations", "AsyncMemory", "Opening"]


@checks_arguments
class AsyncMemory(AsyncProjectMemories, AsyncDeepQuestions):
    """Memory on one home, in one namespace, for programs with an event loop.

    Open it with `async with AsyncMemory.open(...) as memory`, or await `AsyncMemory.open(...)` and
    await `close()`. Safe to share between tasks, and between event loops.
    """

    def __init__(self, memory: Memory, workers: Workers | None = None) -> None:
        self._memory = memory
        self._workers = workers if workers is not None else Workers()

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
        cache_size: int = 256,
        model: str | ModelRole | None = None,
        sub_model: str | ModelRole | None = None,
        clock: Callable[[], datetime] | None = None,
        warm: bool = True,
    ) -> Opening:
        """As `Memory.open`."""
        return Opening(
            Workers(),
            lambda: Memory.open(
                home,
                database=database,
                namespace=namespace,
                conversations_dir=conversations_dir,
                encrypt=encrypt,
                embedder=embedder,
                cache_size=cache_size,
                model=model,
                sub_model=sub_model,
                clock=clock,
                warm=warm,
            ),
        )

    @property
    def namespace(self) -> str:
        """The namespace of this view."""
        return self._memory.namespace

    @property
    def home(self) -> Path:
        """As `Memory.home`."""
        return self._memory.home

    def scoped(self, namespace: str) -> AsyncMemory:
        """As `Memory.scoped`."""
        return AsyncMemory(self._memory.scoped(namespace), self._workers)

    @property
    def conversations(self) -> AsyncConversations:
        """As `Memory.conversations`."""
        return AsyncConversations(self._memory, self._workers)

    async def recall_conversation(
        self,
        conversation_id: str | None,
        query: str,
        *,
        top_k: int = 6,
        budget: int = 2500,
        exclude: str | Iterable[str] = (),
        mode: RecallMode = "hybrid",
    ) -> Recall[TurnHit]:
        """As `Memory.recall_conversation`."""
        return await self._workers.do(
            self._memory.recall_conversation,
            conversation_id,
            query,
            top_k=top_k,
            budget=budget,
            exclude=exclude,
            mode=mode,
        )

    async def remember(
        self,
        text: str,
        *,
        type: MemoryType = "semantic",  # noqa: A002 - the field's own name
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
    ) -> Remembered:
        """As `Memory.remember`."""
        return await self._workers.do(
            self._memory.remember,
            text,
            type=type,
            path=path,
            payload=payload,
            tags=tags,
            category=category,
            source=source,
            conversation_id=conversation_id,
            turn_index=turn_index,
            parent=parent,
            supersedes=supersedes,
            expires_at=expires_at,
            created_at=created_at,
        )

    async def remember_many(
        self,
        items: Iterable[NewMemory | str | Mapping[str, Any]],
        progress: Progress | None = None,
    ) -> builtins.list[Remembered]:
        """As `Memory.remember_many`."""
        return await self._workers.do(self._memory.remember_many, items, in_loop(progress))

    async def recall(
        self,
        query: str,
        *,
        top_k: int = 3,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        mode: RecallMode = "hybrid",
        as_of: datetime | None = None,
        explain: bool = False,
    ) -> Recall[MemoryHit]:
        """As `Memory.recall`."""
        return await self._workers.do(
            self._memory.recall,
            query,
            top_k=top_k,
            min_score=min_score,
            filters=filters,
            mode=mode,
            as_of=as_of,
            explain=explain,
        )

    async def get(self, id: str) -> MemoryRecord:  # noqa: A002 - the field's own name
        """As `Memory.get`."""
        return await self._workers.do(self._memory.get, id)

    async def list(
        self,
        filters: Mapping[str, Any] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[MemoryRecord]:
        """As `Memory.list`."""
        return await self._workers.do(self._memory.list, filters, limit, cursor)

    async def history(self, path: str) -> tuple[MemoryRecord, ...]:
        """As `Memory.history`."""
        return await self._workers.do(self._memory.history, path)

    async def update(self, id: str, **changes: Any) -> Remembered:  # noqa: A002
        """As `Memory.update`."""
        return await self._workers.do(self._memory.update, id, **changes)

    async def forget(
        self,
        id: str | None = None,  # noqa: A002 - the field's own name
        *,
        filters: Mapping[str, Any] | None = None,
        soft: bool = False,
    ) -> Forgotten:
        """As `Memory.forget`."""
        return await self._workers.do(self._memory.forget, id, filters=filters, soft=soft)

    async def reindex(
        self, embedder: str | None = None, *, progress: Progress | None = None
    ) -> Reindexed:
        """As `Memory.reindex`."""
        return await self._workers.do(self._memory.reindex, embedder, progress=in_loop(progress))

    async def namespaces(self) -> tuple[str, ...]:
        """As `Memory.namespaces`."""
        return await self._workers.do(self._memory.namespaces)

    async def health(self) -> Health:
        """As `Memory.health`."""
        return await self._workers.do(self._memory.health)

    @property
    def tokens(self) -> Tokens:
        """As `Memory.tokens`."""
        return self._memory.tokens

    async def backup(
        self, path: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> Backup:
        """As `Memory.backup`."""
        return await self._workers.do(self._memory.backup, path, progress=in_loop(progress))

    @staticmethod
    async def restore(
        path: str | os.PathLike[str],
        home: str | os.PathLike[str],
        *,
        database: str | None = None,
        progress: Progress | None = None,
    ) -> Backup:
        """As `Memory.restore`."""
        return await asyncio.to_thread(
            Memory.restore, path, home, database=database, progress=in_loop(progress)
        )

    async def export(self, path: Target, *, progress: Progress | None = None) -> Exported:
        """As `Memory.export`."""
        return await self._workers.do(self._memory.export, path, progress=in_loop(progress))

    async def import_(
        self,
        source: str | os.PathLike[str] | Iterable[Source],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        again: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
    ) -> ImportReport:
        """As `Memory.import_`."""
        return await self._workers.do(
            self._memory.import_,
            source,
            format=format,
            again=again,
            embed=embed,
            progress=in_loop(progress),
        )

    async def ready(self, timeout: float | None = None) -> bool:
        """As `Memory.ready`."""
        return await self._workers.do(self._memory.ready, timeout)

    def on(self, event: str, handler: Handler) -> None:
        """As `Memory.on`."""
        self._memory.on(event, in_loop(handler) or handler)

    async def stats(self) -> Stats:
        """As `Memory.stats`."""
        return await self._workers.do(self._memory.stats)

    async def doctor(self, *, repair: bool = False) -> tuple[Check, ...]:
        """As `Memory.doctor`."""
        return await self._workers.do(self._memory.doctor, repair=repair)

    async def close(self, timeout: float | None = CLOSING_PATIENCE) -> None:
        """As `Memory.close`."""
        # Not in the pool: its threads may all be at work, and it is the pool that ends here.
        closing = asyncio.ensure_future(
            asyncio.to_thread(self._workers.finish, self._memory.close, timeout)
        )
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Whoever is cancelled while closing still leaves a closed home.
            await closing
            raise

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Opening:
    """A memory that is being opened: await it, or use it as an async context manager."""

    def __init__(self, workers: Workers, open_memory: Callable[[], Memory]) -> None:
        self._workers = workers
        self._open_memory = open_memory
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._opened().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self._opened()
        return self._memory

    async def __aexit__(self, *_: object) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def _opened(self) -> AsyncMemory:
        return AsyncMemory(await self._workers.do(self._open_memory), self._workers)


def _take_docstrings(mirror: type, original: type) -> None:
    """One wording for both: what is said of a method is said once, where it is written."""
    for name, member in vars(mirror).items():
        said = getattr(getattr(original, name, None), "__doc__", None)
        if name.startswith("_") or said is None:
            continue
        function = getattr(member, "__func__", member)
        function.__doc__ = said


def _mirror() -> None:
    from anaphora.store.threads.file_store import ConversationStore

    _take_docstrings(AsyncMemory, Memory)
    _take_docstrings(AsyncDeepQuestions, DeepQuestions)
    _take_docstrings(AsyncProjectMemories, ProjectMemories)
    _take_docstrings(AsyncConversations, ConversationStore)


_mirror()
