"""Notes about projects as pages; see `container.pages`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from anaphora.features.projects.notes import NoteWriter
    from anaphora.features.projects.store.notes import Notes
    from anaphora.values.memories import MemoryRecord

_ALL: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ObservationPages:
    """The observations of one namespace; a diary is not edited."""

    notes: Notes
    writer: NoteWriter

    def list_all(self) -> Iterable[MemoryRecord]:
        """As in `NotePages`."""
        return (row.record for row in self.notes.list(kind="observation", limit=_ALL))

    def find(self, record_id: str) -> MemoryRecord | None:
        """As in `NotePages`."""
        row = self.notes.many([record_id]).get(record_id)
        return None if row is None else row.record

    def list_tombstones(self) -> Iterable[str]:
        """As in `NotePages`."""
        return (record_id for _, record_id in self.notes.tombstones_since(0))

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
        """As in `NotePages`."""
        payload = payload or {}
        return self.writer.observe(
            text,
            kind=cast("Any", kind),
            importance=int(payload.get("importance", 3)),
            tags=tags,
            source=source,
            supersedes=supersedes,
            project=payload.get("project"),
        ).id
