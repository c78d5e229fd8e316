"""The routes of lasting memories."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from anaphora.errors import FilterError
from anaphora.surfaces.rest.auth import lane_router, reads_only
from anaphora.surfaces.rest.calls import answer
from anaphora.surfaces.rest.schemas import (
    Ask,
    DeleteQuery,
    Forgetting,
    ListQuery,
    Memories,
    MemoryChanges,
    MemoryPage,
    Name,
    NewMemoryBody,
    PathQuery,
)
from anaphora.values.memories import Forgotten, MemoryRecord, Remembered

router = lane_router("memory")


@router.post(
    "/memories",
    status_code=201,
    summary="Remember one thing",
    responses={200: {"model": Remembered}, 201: {"model": Remembered}},
)
async def remember(request: Request, body: NewMemoryBody) -> Response:
    """201 when it is new, 200 when it was known and is reinforced. Secrets are taken out first."""
    return await answer(
        request,
        lambda memory: memory.remember(**body.given()),
        lambda done: 200 if done.action == "reinforced" else 201,
    )


@router.get("/memories", summary="List memories", responses={200: {"model": MemoryPage}})
async def list_memories(request: Request, query: Annotated[ListQuery, Query()]) -> Response:
    """The last changed first. `cursor` of a page gets the next one."""
    filters = _filters(query.filters)
    return await answer(request, lambda m: m.list(filters, query.limit, query.cursor))


@router.post("/memories/recall", include_in_schema=False)
@router.post("/recall", summary="Recall memories", responses={200: {"model": Memories}})
@reads_only
async def recall(request: Request, body: Ask) -> Response:
    """Memories that matter for the query: score = similarity × decay × reinforcement."""
    return await answer(
        request,
        lambda memory: memory.recall(
            body.query,
            top_k=body.top_k,
            min_score=body.min_score,
            filters=body.filters,
            mode=body.mode,
            as_of=body.as_of,
            explain=body.explain,
        ),
    )


@router.post("/forget", summary="Forget memories", responses={200: {"model": Forgotten}})
async def forget(request: Request, body: Forgetting) -> Response:
    """One memory, or all that a filter finds, for real. Says what still holds the words."""
    return await answer(request, lambda m: m.forget(body.id, filters=body.filters, soft=body.soft))


@router.get(
    "/memories/history",
    summary="The values of a path",
    responses={200: {"model": list[MemoryRecord]}},
)
async def history(request: Request, query: Annotated[PathQuery, Query()]) -> Response:
    """Every value that a path had, the oldest first."""
    return await answer(request, lambda memory: memory.history(query.path))


@router.get("/memories/{memory_id}", summary="One memory", responses={200: {"model": MemoryRecord}})
async def get(request: Request, memory_id: Name) -> Response:
    """All that is known of it."""
    return await answer(request, lambda memory: memory.get(memory_id))


@router.patch(
    "/memories/{memory_id}",
    summary="Change a memory",
    responses={200: {"model": Remembered}},
)
async def update(request: Request, memory_id: Name, body: MemoryChanges) -> Response:
    """Another text, payload or path makes a new version; the old one stays in its history."""
    # A field that was not sent stays; one that was sent as null has no value any more.
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    return await answer(request, lambda m: m.update(memory_id, **changes))


@router.delete(
    "/memories/{memory_id}",
    summary="Forget one memory",
    responses={200: {"model": Forgotten}},
)
async def delete(
    request: Request, memory_id: Name, query: Annotated[DeleteQuery, Query()]
) -> Response:
    """Gone for real: rows, history, vectors, index; `soft` only takes it out of recall."""
    return await answer(request, lambda memory: memory.forget(memory_id, soft=query.soft))


def _filters(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise FilterError("filters", text, "expected a filter in JSON") from None
    if not isinstance(found, dict):
        raise FilterError("filters", text, "expected a JSON object")
    return found
