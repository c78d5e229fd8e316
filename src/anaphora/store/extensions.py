"""What features do within writes of the store; added when the features are registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Write
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.tokens import Tokens


class Journal(Protocol):
    """Notes what one write does to records of a kind, and stores it in this very write."""

    def note(self, action: str, ids: Iterable[str]) -> None:
        """These records were remembered, changed, hidden, restored or forgotten."""

    def add_to(self, write: Write, sealer: Sealer) -> None:
        """Store what was noted."""


OpenJournal = Callable[["Write", str, "Sealer"], Journal | None]
"""The journal of a write to records of a kind; None if none is kept."""
LatestSeen = Callable[["RecordTransaction"], datetime | None]
"""The latest time of change that is known of other devices; None without any."""

ForgetTokens = Callable[["Tokens", Sequence[str]], object]
"""Called with the ids of tokens that are gone for good."""

JOURNALS: Final[list[OpenJournal]] = []
CLOCKS: Final[list[LatestSeen]] = []
DROPPED_TOKENS: Final[list[ForgetTokens]] = []
