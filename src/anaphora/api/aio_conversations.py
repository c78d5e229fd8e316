"""The asynchronous face of a `ConversationStore`, for `aio.py`.

In: the arguments of the store's methods. Out: the same values, awaited. It holds no logic of its
own, and imports no event loop: `Workers` are what runs a call elsewhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from anaphora.api.memory import Memory
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.disk import Identity
    from anaphora.store.threads.conversations import Conversations

ResultT = TypeVar("ResultT")


class Workers(Protocol):
    """Runs calls in other threads."""

    async def do(self, call: Callable[[], ResultT]) -> ResultT:
        """What `call` returns or raises."""
        ...


class AsyncConversations:
    """The threads of one namespace. Strict: a turn that was not kept raises."""

    def __init__(self, memory: Memory, workers: Workers) -> None:
        self._memory = memory
        self._workers = workers

    async def _do(self, call: Callable[[Conversations], ResultT]) -> ResultT:
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

    async def extend(
        self, conversation_id: str, turns: Sequence[NewTurn], *, title: str = ""
    ) -> range:
        """As `ConversationStore.extend`."""
        return await self._do(lambda store: store.extend(conversation_id, turns, title=title))

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
