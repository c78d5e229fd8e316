"""The routes of lasting memories."""

from __future__ import annotations

from typing import Any

from anaphora.api.memories import LastingMemories
from anaphora.api.memory import Memory
from anaphora.surfaces.rest.routing import LaneRouter, MemoryId
from anaphora.surfaces.rest.schemas import (
    DeleteQuery,
    MemoryChanges,
    NewMemories,
    NewMemoryBody,
)
from anaphora.values.memories import Forgotten, Remembered

router = LaneRouter("memory")
router.offer(LastingMemories)
router.offer(Memory, "search")
# The address of older clients.
router.offer(LastingMemories, "recall", hidden_at="/memories/recall")


@router.answers(
    "POST /memories",
    "Remember one thing",
    Remembered,
    201,
    or_else=(200, lambda done: done.action == "reinforced"),
)
def remember(memory: Memory, body: NewMemoryBody) -> Any:
    """201 when it is new, 200 when it was known and is reinforced. Secrets are redacted first."""
    return memory.remember(**body.given())


@router.answers("POST /memories/many", "Remember many things", list[Remembered], 201)
def remember_many(memory: Memory, body: NewMemories) -> Any:
    """As if one after the other; all are checked before any is stored."""
    return memory.remember_many([new_memory.given() for new_memory in body.items])


@router.answers("PATCH /memories/{memory_id}", "Change a memory", Remembered)
def update_memory(memory: Memory, memory_id: MemoryId, body: MemoryChanges) -> Any:
    """Another text, payload or path makes a new version; the old one stays in its history."""
    # Fields that were not sent stay unchanged.
    return memory.update(memory_id, **{name: getattr(body, name) for name in body.model_fields_set})


@router.answers("DELETE /memories/{memory_id}", "Forget one memory", Forgotten)
def delete_memory(memory: Memory, memory_id: MemoryId, query: DeleteQuery) -> Any:
    """Deleted for good, or after a day if `undoable`; `soft` only takes it out of recall."""
    return memory.forget(memory_id, soft=query.soft, undoable=query.undoable)
