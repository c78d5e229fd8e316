"""A context provider for Microsoft's Agent Framework: memory before a run, and what was said after.

    Agent(client=…, context_providers=[AnaphoraContextProvider(memory)])

Before a run what bears on the user's messages is put in as one message, within a budget; after it
what the user and the agent said is kept as turns of the session's conversation. Nothing that was
recalled is kept as if it had been said. Everything runs beside the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from anaphora.adapters.prompting import recalled_block
from anaphora.api.aio import AsyncMemory
from anaphora.errors import MissingExtra
from anaphora.store.threads.ids import safe_id
from anaphora.text.recalled import strip_recalled
from anaphora.values.conversations import NewTurn

try:
    from agent_framework import ContextProvider, Message
except ImportError as error:
    raise MissingExtra("", "agent-framework-core") from error

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

__all__ = ["AnaphoraContextProvider"]

SOURCE: Final = "agent_framework"
_SAID: Final = ("user", "assistant")


class AnaphoraContextProvider(ContextProvider):
    """A `ContextProvider` over an `AsyncMemory`.

    `namespace_of(session)` names the namespace of a session, such as one for each user; by default
    it is the memory's own. `budget` are the tokens that may be put in, `top_k` the hits among them;
    `unasked` leaves only those that stand out. `keep=False` keeps nothing of what is said.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "anaphora"

    def __init__(
        self,
        memory: AsyncMemory,
        *,
        source_id: str = DEFAULT_SOURCE_ID,
        namespace_of: Callable[[AgentSession], str] | None = None,
        budget: int = 600,
        top_k: int = 6,
        unasked: bool = False,
        keep: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory = memory
        self._namespace_of = namespace_of
        self._budget = budget
        self._top_k = top_k
        self._unasked = unasked
        self._keep = keep

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Put in what bears on the messages of this run, if anything does."""
        question = "\n".join(
            message.text for message in context.input_messages if message.role == "user"
        )
        block = await recalled_block(
            self._scope(session),
            question,
            exclude=[
                message.text for message in context.get_messages(include_input=True) if message.text
            ],
            budget=self._budget,
            top_k=self._top_k,
            unasked=self._unasked,
        )
        if block:
            context.extend_messages(self, [Message(role="user", contents=[block])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Keep the turns of this run: all of them, or none."""
        answer_messages = context.response.messages if context.response is not None else []
        # The texts of users and agents, without tools and recalled blocks.
        texts = [
            (str(message.role), message.author_name, strip_recalled(message.text or "").strip())
            for message in (*context.input_messages, *answer_messages)
            if message.role in _SAID
        ]
        turns = [NewTurn(role, text, speaker=name or None) for role, name, text in texts if text]
        if self._keep and turns:
            conversation = safe_id(SOURCE, session.session_id)
            await self._scope(session).conversations.extend(conversation, turns)

    def _scope(self, session: AgentSession) -> AsyncMemory:
        if self._namespace_of is None:
            return self._memory
        return self._memory.scoped(self._namespace_of(session))
