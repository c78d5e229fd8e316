"""The routes of lasting memories."""

from __future__ import annotations

import json
from typing import Any

from anaphora.api.memory import Memory
from anaphora.errors import FilterError
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import (
    Ask,
    ContradictionQuery,
    DeleteQuery,
    Forgetting,
    ListQuery,
    MemoryChanges,
    Name,
    NewMemories,
    NewMemoryBody,
    PathQuery,
    Reopening,
    SearchQuestion,
    Settling,
    ShortIdQuery,
    Unforgetting,
)
from anaphora.surfaces.rest.shapes import BroughtBack, Memories, MemoryPage, SearchHits, WholeId
from anaphora.surfaces.wire import times_between
from anaphora.values.memories import Contradiction, Forgotten, MemoryRecord, Remembered

router = LaneRouter("memory")


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


@router.answers("GET /memories", "List memories", MemoryPage)
def list_memories(memory: Memory, query: ListQuery) -> Any:
    """The last changed first. `cursor` of a page gets the next one."""
    filters = None
    if query.filters is not None:
        try:
            filters = json.loads(query.filters)
        except (ValueError, RecursionError):
            raise FilterError("filters", query.filters, "expected a filter in JSON") from None
        if not isinstance(filters, dict):
            raise FilterError("filters", query.filters, "expected a JSON object")
    return memory.list(filters, query.limit, query.cursor)


@router.answers("POST /search", "Search everything", SearchHits, reads=True)
def search(memory: Memory, body: SearchQuestion) -> Any:
    """Memories, notes, turns, files and documents in one list, with the words that matched."""
    fields = body.given()
    fields |= times_between(fields, memory.local_time)
    return memory.search(fields.pop("query"), **fields)


@router.answers("POST /memories/recall", "Recall memories", Memories, reads=True, shown=False)
@router.answers("POST /recall", "Recall memories", Memories, reads=True)
def recall(memory: Memory, body: Ask) -> Any:
    """Memories that matter for the query: similarity × decay × reinforcement."""
    return memory.recall(**body.given())


@router.answers("GET /contradictions", "Memories that seem to contradict", list[Contradiction])
def contradictions(memory: Memory, query: ContradictionQuery) -> Any:
    """Pairs of similar memories that contradict each other, last found first."""
    return memory.contradictions(settled=query.settled, limit=query.limit)


@router.answers("POST /contradictions/settle", "Resolve a contradiction", Contradiction)
def settle_contradiction(memory: Memory, body: Settling) -> Any:
    """The replaced memory stays in history and is no longer recalled."""
    return memory.settle_contradiction(body.id, body.other_id, body.verdict)


@router.answers("POST /contradictions/reopen", "Reopen a contradiction", Contradiction)
def reopen_contradiction(memory: Memory, body: Reopening) -> Any:
    """The memory that it ended is current again, and the contradiction is open."""
    return memory.reopen_contradiction(body.id, body.other_id)


@router.answers("POST /forget", "Forget memories", Forgotten)
def forget(memory: Memory, body: Forgetting) -> Any:
    """One memory, or all that match a filter, for good. Reports what still contains the text."""
    return memory.forget(**body.given())


@router.answers("POST /forget/undo", "Undo forgetting", BroughtBack)
def undo_forget(memory: Memory, body: Unforgetting) -> Any:
    """Restores what was forgotten with `undoable` or `soft`, and what was hidden with it."""
    return {"ids": memory.undo_forget(body.id)}


@router.answers("GET /resolve", "Resolve a short id", WholeId)
def resolve_id(memory: Memory, query: ShortIdQuery) -> Any:
    """The one id of a memory, note or conversation that ends so."""
    return {"id": memory.resolve_id(query.short, query.kind)}


@router.answers("GET /memories/history", "The values of a path", list[MemoryRecord])
def history(memory: Memory, query: PathQuery) -> Any:
    """Every value that a path had, the oldest first."""
    return memory.history(query.path)


@router.answers("GET /memories/{memory_id}", "One memory", MemoryRecord)
def get_memory(memory: Memory, memory_id: Name) -> Any:
    """All its properties."""
    return memory.get(memory_id)


@router.answers("PATCH /memories/{memory_id}", "Change a memory", Remembered)
def update_memory(memory: Memory, memory_id: Name, body: MemoryChanges) -> Any:
    """Another text, payload or path makes a new version; the old one stays in its history."""
    # Fields that were not sent stay unchanged.
    return memory.update(memory_id, **{name: getattr(body, name) for name in body.model_fields_set})


@router.answers("DELETE /memories/{memory_id}", "Forget one memory", Forgotten)
def delete_memory(memory: Memory, memory_id: Name, query: DeleteQuery) -> Any:
    """Deleted for good, or after a day if `undoable`; `soft` only takes it out of recall."""
    return memory.forget(memory_id, soft=query.soft, undoable=query.undoable)
