"""Remembering in one namespace of a memory, in the short words of the tests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.exported import exported

from anaphora import Memory, MemoryRecord, NewMemory, Remembered


@dataclass
class Desk:
    """A memory with its embedder loaded."""

    memory: Memory

    def take(self, new: NewMemory) -> Remembered:
        """Remember one memory just as it is given."""
        (done,) = self.memory.remember_many([new])
        return done

    def say(self, text: str, **fields: Any) -> Remembered:
        """Remember one memory."""
        return self.memory.remember(text, **fields)

    def get(self, record_id: str) -> MemoryRecord:
        """A memory with all that is known of it."""
        return self.memory.get(record_id)

    def present(self) -> list[MemoryRecord]:
        """All memories that stand."""
        return list(self.memory.list(limit=999))

    def events(self, record_id: str) -> list[dict[str, Any]]:
        """What happened to a memory, as an export says it."""
        lines = exported(self.memory, "memory")
        (events,) = [line["events"] for line in lines if line["id"] == record_id]
        return [{**event, "at": datetime.fromisoformat(event["at"])} for event in events]

    def everything(self) -> bytes:
        """All that truth holds, as an export says it."""
        out = io.BytesIO()
        self.memory.export(out)
        return out.getvalue()
