"""What the kernel asks of a feature whose records are read and edited as pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from anaphora.values.memories import MemoryRecord


class NotePages(Protocol):
    """The notes of one namespace, as pages."""

    def list_all(self) -> Iterable[MemoryRecord]:
        """The current notes."""

    def find(self, record_id: str) -> MemoryRecord | None:
        """The note with this id, past ones too."""

    def list_tombstones(self) -> Iterable[str]:
        """The ids of notes that were forgotten for good."""

    def write(
        self,
        text: str,
        *,
        kind: str,
        tags: Iterable[str],
        source: str | None,
        supersedes: str | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> str:
        """Keep a note, in place of the one that it supersedes; its id. Raises InvalidInput.

        `payload` is that of the superseded note.
        """
