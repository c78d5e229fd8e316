"""`AsyncMemory`: the facade for programs with an event loop. Every call runs in a worker thread.

Handlers and progress callbacks run in the event loop, in the order of what they tell. A call that
is cancelled before it began is not made, and a recall that has begun ends at its next step; any
other call is finished in its thread, so that nothing is half-done, and `close` waits for it.
"""

# The methods are generated below from those of `Memory`. Type checkers read `aio.pyi`, which
# `tools/async_stub.py` generates from the same source.

from __future__ import annotations

import asyncio
import builtins
import functools
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.api.memory import Memory
from anaphora.api.workers import Workers, in_loop
from anaphora.calls.counting import CLOSING_PATIENCE
from anaphora.calls.operation import operations_of, public_members
from anaphora.store.threads.file_store import ConversationStore

if TYPE_CHECKING:
    from anaphora.container.home import Handler
    from anaphora.ops import Backup

__all__ = ["AsyncConversations", "AsyncMemory", "Opening"]

CALLBACKS = frozenset({"progress", "on_step"})
"""The parameters that take a callback, which runs in the event loop."""


def _looped(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with callbacks bound to the running event loop."""
    bound = inspect.signature(function).bind(*args, **named)
    for name in CALLBACKS & bound.arguments.keys():
        bound.arguments[name] = in_loop(bound.arguments[name])
    return bound.args, bound.kwargs


class AsyncConversations:
    """The threads of one namespace. Strict: a turn that was not kept raises."""

    def __init__(self, memory: Memory, workers: Workers) -> None:
        self._memory = memory
        self._workers = workers

    @property
    def directory(self) -> Path | None:
        """The folder of the thread files."""
        return self._memory.conversations.directory

    async def files(self) -> Iterator[tuple[str, Path]]:
        """As `ConversationStore.files`."""
        return iter(await self._do("files", gathered=builtins.list))

    async def _do(
        self, name: str, /, *args: Any, gathered: Callable[[Any], Any] | None = None, **named: Any
    ) -> Any:
        def call() -> Any:
            # The first access to the store opens files.
            outcome = getattr(self._memory.conversations, name)(*args, **named)
            return outcome if gathered is None else gathered(outcome)

        return await self._workers.do(call)


class AsyncMemory:
    """Memory on one home, in one namespace, for programs with an event loop.

    Open it with `async with AsyncMemory.open(...) as memory`, or await `AsyncMemory.open(...)` and
    await `close()`. Safe to share between tasks, and between event loops.
    """

    def __init__(self, memory: Memory, workers: Workers | None = None) -> None:
        self._memory = memory
        self._workers = workers if workers is not None else Workers()

    @classmethod
    def open(cls, *args: Any, **named: Any) -> Opening:
        """As `Memory.open`."""
        return Opening(Workers(), lambda: Memory.open(*args, **named))

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

    @staticmethod
    async def restore(*args: Any, **named: Any) -> Backup:
        """As `Memory.restore`."""
        args, named = _looped(Memory.restore, args, named)
        return await asyncio.to_thread(Memory.restore, *args, **named)

    def on(self, event: str, handler: Handler) -> None:
        """As `Memory.on`."""
        self._memory.on(event, in_loop(handler) or handler)

    async def close(self, timeout: float | None = CLOSING_PATIENCE) -> None:
        """As `Memory.close`."""
        operations_of(Memory)["close"].checks.apply((self, timeout), {})
        # Not in the pool: it is shut down here, and all its threads may be busy.
        closing = asyncio.ensure_future(
            asyncio.to_thread(self._workers.finish, self._memory.close, timeout)
        )
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Cancelled while closing: the home is still closed.
            await closing
            raise

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _do(self, name: str, /, *args: Any, **named: Any) -> Any:
        return await self._workers.do(getattr(self._memory, name), *args, **named)


class Opening:
    """A memory that is being opened: await it, or use it as an async context manager."""

    def __init__(self, workers: Workers, open_memory: Callable[[], Memory]) -> None:
        self._workers = workers
        self._open_memory = open_memory

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory: AsyncMemory = await self._open()
        return self._memory

    async def __aexit__(self, *_: object) -> None:
        await self._memory.close()

    async def _open(self) -> AsyncMemory:
        return AsyncMemory(await self._workers.do(self._open_memory), self._workers)


def _mirror(mirror: type, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Add the methods that `mirror` has not, and give all of them their docstrings."""
    for name, function in functions.items():
        method = vars(mirror).get(name)
        if method is None:
            method = _awaited(function)
            method.__qualname__ = f"{mirror.__name__}.{name}"
        _tell_as(getattr(method, "__func__", method), function)
        setattr(mirror, name, method)


def _mirror_properties(mirror: type, original: type, place: str) -> None:
    for name, member in public_members(original):
        if isinstance(member, property):
            getter = vars(mirror).get(name) or property(attrgetter(f"{place}.{name}"))
            setattr(mirror, name, property(getter.fget, doc=member.__doc__))


def _awaited(function: Callable[..., Any]) -> Any:
    name = function.__name__
    has_callback = not CALLBACKS.isdisjoint(inspect.signature(function).parameters)

    async def call(self: AsyncMemory | AsyncConversations, *args: Any, **named: Any) -> Any:
        if has_callback:
            (self, *args), named = _looped(function, (self, *args), named)
        return await self._do(name, *args, **named)

    return call


def _tell_as(wrapper: Any, function: Callable[..., Any]) -> None:
    """Copy the name, docstring and parameters of the function; a declared result stays."""
    annotation = inspect.get_annotations(wrapper).get("return", "Any")
    functools.update_wrapper(wrapper, function, assigned=("__name__", "__doc__"), updated=())
    if annotation != "Any":
        wrapper.__signature__ = inspect.signature(function).replace(return_annotation=annotation)


_mirror(
    AsyncMemory,
    {name: described.function for name, described in operations_of(Memory).items()},
)
_mirror_properties(AsyncMemory, Memory, "_memory")
_mirror(
    AsyncConversations,
    {name: member for name, member in public_members(ConversationStore) if callable(member)},
)
_mirror_properties(AsyncConversations, ConversationStore, "_memory.conversations")
