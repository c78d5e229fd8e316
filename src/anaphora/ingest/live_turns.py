"""Turns of a conversation that is under way, as a client sends them: again, or with more."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anaphora.values.conversations import NewTurn

if TYPE_CHECKING:
    from anaphora.store.threads.conversations import Conversations

# Two simultaneous calls must not both find the same turns missing.
_extending = threading.Lock()


def extend_by_new(conversations: Conversations, to: str, turns: Sequence[NewTurn]) -> int:
    """Store those of the turns that do not end the thread already; how many others there were."""
    with _extending:
        thread = conversations.get(to)
        earlier = thread.turns if thread is not None else ()
        tail = [(turn.role, turn.text) for turn in earlier[max(0, len(earlier) - len(turns)) :]]
        turn_pairs = [(turn.role, turn.text) for turn in turns]
        sizes = range(min(len(tail), len(turn_pairs)), 0, -1)
        stored_count = next((size for size in sizes if tail[-size:] == turn_pairs[:size]), 0)
        if turns[stored_count:]:
            conversations.extend(to, turns[stored_count:])
    return stored_count
