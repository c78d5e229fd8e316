"""What a question on a surface names must be there: a slip in an id is no empty answer.

In: a memory and an id that a caller named. Out: what was asked for, or `NotFound`. The facade
itself answers with nothing for a conversation that has not begun: an agent may ask before its
first turn. Who names one on a surface has read its id somewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anaphora.errors import NotFound

if TYPE_CHECKING:
    from anaphora.api.memory import Memory
    from anaphora.values.conversations import Recall, TurnHit


def recalled_turns(
    memory: Memory, conversation_id: str | None, query: str, **options: Any
) -> Recall[TurnHit]:
    """As `Memory.recall_conversation`, but `NotFound` for a conversation that is not there."""
    found = memory.recall_conversation(conversation_id, query, **options)
    if not found.hits:
        # What has hits is there; only otherwise is the whole conversation looked for.
        refuse_unknown(memory, conversation_id)
    return found


def refuse_unknown(memory: Memory, conversation_id: str | None) -> None:
    """`NotFound` for a conversation that is not there; None is all of them."""
    if conversation_id is not None and memory.conversations.get(conversation_id) is None:
        raise NotFound("conversation", conversation_id)
