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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from anaphora.errors import Closed
from anaphora.memory import Handler, Memory, Progress
from anaphora.values import (
    Check,
    ImportedConversation,
    ImportReport,
    NewTurn,
    Recall,
    RecallMode,
    Stats,
    Thread,
    ThreadProblem,
    ThreadSummary,
    Turn,
    TurnHit,
)

if TYPE_CHECKING:
    from anaphora.embed.base import Embedder
    from anaphora.store.disk import Identity
    from anaphora.store.threads import ConversationStore

__all__ = ["AsyncConversations", "AsyncMemory", "Opening"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

# Calls wait for disks and models, hardly for each other.
_THREADS = 8


@dataclass(slots=True)
class _Workers:
    """The threads that all views on one home share, and what they are doing."""

    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_THREADS, thread_name_prefix="anaphora")
    )
    running: set[Future[Any]] = field(default_factory=set)

    async def do(self, call: Callable[P, ResultT], *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """What `call` returns or raises, from a worker thread with the caller's context."""
        try:
            future = self.pool.submit(copy_context().run, partial(call, *args, **kwargs))
        except RuntimeError:
            # The pool was shut down, or the interpreter is ending.
            raise Closed from None
        self.running.add(future)
        future.add_done_callback(self.running.discard)
        return await asyncio.wrap_future(future)

    def finish(self, close: Callable[[], None]) -> None:
        """Wait for what is running, cancelled or not, then close."""
        wait(set(self.running))
        close()
        self.pool.shutdown(wait=False)


class AsyncMemory:
    """Memory on one home, in one namespace, for programs with an event loop.

    Open it with `async with AsyncMemory.open(...) as memory`, or await `AsyncMemory.open(...)` and
    await `close()`. Safe to share between tasks, and between event loops.
    """

    def __init__(self, memory: Memory, workers: _Workers | None = None) -> None:
        self._memory = memory
        self._workers = workers if workers is not None else _Workers()

    @classmethod
    def open(
        cls,
        home: str | os.PathLike[str] | None = None,
        *,
        namespace: str = "default",
        conversations_dir: str | os.PathLike[str] | None = None,
        embedder: str | Embedder | None = None,
        cache_size: int = 256,
        clock: Callable[[], datetime] | None = None,
        warm: bool = True,
    ) -> Opening:
        """As `Memory.open`."""
        workers = _Workers()
        return Opening(
            workers,
            lambda: Memory.open(
                home,
                namespace=namespace,
                conversations_dir=conversations_dir,
                embedder=embedder,
                cache_size=cache_size,
                clock=clock,
                warm=warm,
            ),
        )

    @property
    def namespace(self) -> str:
        """The namespace of this view."""
        return self._memory.namespace

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
        exclude: Iterable[str] = (),
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

    async def import_(
        self,
        source: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | ImportedConversation],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        again: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """As `Memory.import_`."""
        return await self._workers.do(
            self._memory.import_,
            source,
            format=format,
            again=again,
            progress=_in_loop(progress),
        )

    async def ready(self, timeout: float | None = None) -> bool:
        """As `Memory.ready`."""
        return await self._workers.do(self._memory.ready, timeout)

    def on(self, event: str, handler: Handler) -> None:
        """As `Memory.on`."""
        self._memory.on(event, _in_loop(handler) or handler)

    async def stats(self) -> Stats:
        """As `Memory.stats`."""
        return await self._workers.do(self._memory.stats)

    async def doctor(self) -> tuple[Check, ...]:
        """As `Memory.doctor`."""
        return await self._workers.do(self._memory.doctor)

    async def close(self) -> None:
        """As `Memory.close`."""
        # Not in the pool: its threads may all be at work, and it is the pool that ends here.
        closing = asyncio.ensure_future(asyncio.to_thread(self._workers.finish, self._memory.close))
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

    def __init__(self, workers: _Workers, open_memory: Callable[[], Memory]) -> None:
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


class AsyncConversations:
    """The threads of one namespace. Strict: a turn that was not kept raises."""

    def __init__(self, memory: Memory, workers: _Workers) -> None:
        self._memory = memory
        self._workers = workers

    async def _do(self, call: Callable[[ConversationStore], ResultT]) -> ResultT:
        # Even getting at the store opens files the first time.
        return await self._workers.do(lambda: call(self._memory.conversations))

    @property
    def directory(self) -> Path | None:
        """The folder of the thread files."""
        return self._memory.conversations.directory

    @property
    def enabled(self) -> bool:
        """Whether there is a directory to keep conversations in."""
        return self._memory.conversations.enabled

    @property
    def failures(self) -> int:
        """How often the disk refused something that a bare store only logged."""
        return self._memory.conversations.failures

    @property
    def suffix(self) -> str:
        """What the names of thread files end in."""
        return self._memory.conversations.suffix

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
        return await self._do(
            lambda store: store.append(
                conversation_id, role, text, intent_id=intent_id, ts=ts, speaker=speaker
            )
        )

    async def append_user(self, conversation_id: str, text: str) -> bool:
        """As `ConversationStore.append_user`."""
        return await self._do(lambda store: store.append_user(conversation_id, text))

    async def append_assistant(
        self, conversation_id: str, text: str, *, intent_id: str = ""
    ) -> bool:
        """As `ConversationStore.append_assistant`."""
        return await self._do(
            lambda store: store.append_assistant(conversation_id, text, intent_id=intent_id)
        )

    async def extend(self, conversation_id: str, turns: Sequence[NewTurn]) -> range:
        """As `ConversationStore.extend`."""
        return await self._do(lambda store: store.extend(conversation_id, turns))

    async def recent(self, conversation_id: str, n: int = 16) -> tuple[Turn, ...]:
        """As `ConversationStore.recent`."""
        return await self._do(lambda store: store.recent(conversation_id, n))

    async def get(self, conversation_id: str) -> Thread | None:
        """As `ConversationStore.get`."""
        return await self._do(lambda store: store.get(conversation_id))

    async def list(self) -> tuple[ThreadSummary, ...]:
        """As `ConversationStore.list`."""
        return await self._do(lambda store: store.list())

    async def delete(self, conversation_id: str) -> bool:
        """As `ConversationStore.delete`."""
        return await self._do(lambda store: store.delete(conversation_id))

    async def redact(self, conversation_id: str, index: int) -> bool:
        """As `ConversationStore.redact`."""
        return await self._do(lambda store: store.redact(conversation_id, index))

    async def set_title(self, conversation_id: str, title: str) -> bool:
        """As `ConversationStore.set_title`."""
        return await self._do(lambda store: store.set_title(conversation_id, title))

    async def problems(self) -> tuple[ThreadProblem, ...]:
        """As `ConversationStore.problems`."""
        return await self._do(lambda store: store.problems())

    async def path(self, conversation_id: str) -> Path:
        """As `ConversationStore.path`."""
        return await self._do(lambda store: store.path(conversation_id))

    async def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """As `ConversationStore.read_file`."""
        return await self._do(lambda store: store.read_file(conversation_id))

    async def files(self) -> Iterator[tuple[str, Path]]:
        """As `ConversationStore.files`."""
        return iter(await self._do(lambda store: builtins.list(store.files())))


def _in_loop(callback: Callable[P, object] | None) -> Callable[P, None] | None:
    """The callback, to be called from any thread: it runs in the present event loop."""
    if callback is None:
        return None
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        # Without a loop there is nowhere else to run.
        return lambda *args, **kwargs: _ignored(callback(*args, **kwargs))

    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        # A loop that is closed has nobody left to be told.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(partial(callback, *args, **kwargs))

    return call


def _ignored(_: object) -> None:
    """What a callback returns is nobody's concern."""


def _take_docstrings(mirror: type, original: type) -> None:
    """One wording for both: what is said of a method is said once, where it is written."""
    for name, member in vars(mirror).items():
        said = getattr(getattr(original, name, None), "__doc__", None)
        if name.startswith("_") or said is None:
            continue
        function = member.__func__ if isinstance(member, classmethod) else member
        function.__doc__ = said


def _mirror() -> None:
    from anaphora.store.threads import ConversationStore

    _take_docstrings(AsyncMemory, Memory)
    _take_docstrings(AsyncConversations, ConversationStore)


_mirror()
