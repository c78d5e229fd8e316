"""A memory block for LlamaIndex: keeps what leaves the window, recalls what bears on a question.

    Memory.from_defaults(session_id="monday", memory_blocks=[AnaphoraMemoryBlock(memory=memory)])

LlamaIndex flushes the oldest messages of a full window into its blocks, and asks them for their
content with every question. A flushed message becomes a turn of the session's conversation, as it
was said; the content is a recalled block over all conversations and lasting memories, within its
budget. Nothing that was recalled is kept as if it had been said.
"""

from __future__ import annotations

from typing import Any, Final

from anaphora.adapters.prompting import recalled_block
from anaphora.api.aio import AsyncMemory
from anaphora.errors import MissingExtra
from anaphora.store.threads.ids import safe_id
from anaphora.text.recalled import strip_recalled
from anaphora.values.conversations import NewTurn

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise MissingExtra("", "llama-index-core") from error

__all__ = ["AnaphoraMemoryBlock"]

SOURCE: Final = "llama_index"
_SESSION: Final = "session_id"
_SAID: Final = frozenset({MessageRole.USER, MessageRole.ASSISTANT})


class AnaphoraMemoryBlock(BaseMemoryBlock[str]):
    """A block over one namespace of an `AsyncMemory`, `memory.scoped("mara")` for a user's own.

    `budget` are the tokens that the content may cost, `top_k` the hits in it; `unasked` leaves only
    those that stand out for the question, so that most questions get none. `session_id` is the
    session of messages that come without one. LlamaIndex's `priority` of 0 never drops the content;
    a higher one drops it where the window is too small.
    """

    name: str = Field(default="RecalledMemory", description="The name of the memory block.")
    memory: AsyncMemory = Field(description="Where it is kept.", exclude=True)
    budget: int = Field(default=600, ge=0, description="Tokens of the content.")
    top_k: int = Field(default=6, ge=1, description="Hits in the content.")
    unasked: bool = Field(default=False, description="Only what stands out for the question.")
    session_id: str = Field(default="default", description="Where messages without one are kept.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """What bears on the user's last message; "" where nothing does."""
        chat = messages or []
        question = next(
            (message for message in reversed(chat) if message.role == MessageRole.USER), None
        )
        if question is None:
            return ""
        return await recalled_block(
            self.memory,
            question.content or "",
            exclude=[message.content for message in chat if message.content],
            budget=self.budget,
            top_k=self.top_k,
            unasked=self.unasked,
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Keep what users and assistants said, in its order; all of it, or none."""
        by_session: dict[str, list[NewTurn]] = {}
        for message in messages:
            text = strip_recalled(message.content or "").strip()
            if message.role in _SAID and text:
                session = str(message.additional_kwargs.get(_SESSION) or self.session_id)
                turn = NewTurn(message.role.value, text)
                by_session.setdefault(session, []).append(turn)
        for session, turns in by_session.items():
            await self.memory.conversations.extend(safe_id(SOURCE, session), turns)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Less of the content is none of it: half a block would be no block."""
        return None
