"""Memory and recall for AI agents, on the user's own machine.

from anaphora import Memory

with Memory.open() as memory:
    memory.conversations.append_user("chat", "The staging database listens on port 5433.")
    print(memory.recall_conversation("chat", "which port is staging on?"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anaphora.api.aio import AsyncMemory
    from anaphora.api.memory import Memory
    from anaphora.api.rendering import render_recall
    from anaphora.client.memory import RemoteMemory
    from anaphora.core.limits import Cancellation
    from anaphora.core.recalled import strip_recalled
    from anaphora.store.threads.file_store import ConversationStore, conversations_dir
    from anaphora.values.memories import NewMemory

__all__ = [
    "AsyncMemory",
    "Cancellation",
    "ConversationStore",
    "Memory",
    "NewMemory",
    "RemoteMemory",
    "__version__",
    "conversations_dir",
    "render_recall",
    "strip_recalled",
]

__version__ = "0.1.0"

# What not every user needs is imported when it is first asked for: importing the package is part
# of the time to an agent's first answer.
_LAZY = {
    "Memory": "anaphora.api.memory",
    "AsyncMemory": "anaphora.api.aio",
    "RemoteMemory": "anaphora.client.memory",
    "Cancellation": "anaphora.core.limits",
    "NewMemory": "anaphora.values.memories",
    "ConversationStore": "anaphora.store.threads.file_store",
    "conversations_dir": "anaphora.store.threads.file_store",
    "render_recall": "anaphora.api.rendering",
    "strip_recalled": "anaphora.core.recalled",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
