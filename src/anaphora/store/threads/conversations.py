"""What every store of conversations does, wherever it keeps them.

Two keep this contract, held to it by one class of tests: `ConversationStore` (a Go file for each
conversation) and `SqlConversationStore` (rows of the database of a home). The methods are told in
`anaphora.store.threads.file_store`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from anaphora.store.disk import Identity
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    pass

DEFAULT_RECENT = 16
WRITES = (
    "append", "append_user", "append_assistant", "extend", "delete", "redact", "set_title",
)  # fmt: skip
"""The methods that change something."""


class Conversations(Protocol):
    """A store of conversations."""

    @property
    def directory(self) -> Path | None:
        """The folder of the thread files; None where there are none."""
        ...

    @property
    def enabled(self) -> bool:
        """Whether it keeps anything."""
        ...

    @property
    def failures(self) -> int:
        """How often it only logged what the disk refused."""
        ...

    @property
    def suffix(self) -> str:
        """What the names of thread files end in."""
        ...

    def append(
        self,
        conversation_id: str,
        role: str,
        text: str,
        *,
        intent_id: str = "",
        ts: datetime | None = None,
        speaker: str | None = None,
    ) -> bool:
        """Keep one turn."""
        ...

    def append_user(self, conversation_id: str, text: str) -> bool:
        """Keep what the user said."""
        ...

    def append_assistant(self, conversation_id: str, text: str, *, intent_id: str = "") -> bool:
        """Keep what the assistant answered."""
        ...

    def extend(self, conversation_id: str, turns: Sequence[NewTurn], *, title: str = "") -> range:
        """Keep several turns, all or none."""
        ...

    def recent(self, conversation_id: str, n: int = DEFAULT_RECENT) -> tuple[Turn, ...]:
        """The last turns, oldest first."""
        ...

    def get(self, conversation_id: str) -> Thread | None:
        """The whole conversation."""
        ...

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation, newest first."""
        ...

    def delete(self, conversation_id: str) -> bool:
        """Remove a conversation."""
        ...

    def redact(self, conversation_id: str, index: int) -> bool:
        """Take the words of a turn out."""
        ...

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give a conversation a title."""
        ...

    def problems(self) -> tuple[ThreadProblem, ...]:
        """What could not be read."""
        ...

    def path(self, conversation_id: str) -> Path:
        """The file of a conversation."""
        ...

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation as the bytes of a Go file, and what tells this state of it apart."""
        ...

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and file."""
        ...
