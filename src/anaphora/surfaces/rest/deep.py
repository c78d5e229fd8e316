"""The routes of deep recall: questions that need more than a search, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.surfaces.rest import calls
from anaphora.surfaces.rest.auth import lane_router
from anaphora.surfaces.rest.calls import answer, caller_of, service_of
from anaphora.surfaces.rest.schemas import (
    DeepQuestion,
    DreamWish,
    ExtractWish,
    GapQuery,
    Gaps,
    Name,
    TraceQuery,
    Traces,
)
from anaphora.surfaces.wire import refuse_unknown
from anaphora.values.deep import DeepAnswer, DreamReport, Extracted

router = lane_router("deep")


def _asked(
    body: DeepQuestion, memory: Memory, on_step: Callable[[Any], None] | None = None
) -> DeepAnswer:
    refuse_unknown(memory, body.conversation_id)
    return memory.deep_recall(
        body.question,
        scope=body.scope,
        conversation_id=body.conversation_id,
        include_memory=body.include_memory,
        budget=None if body.budget is None else body.budget.budget(),
        on_step=on_step,
    )


@router.post(
    "/deep",
    summary="Ask a deep question",
    responses={
        200: {
            "model": DeepAnswer,
            "description": "The answer; or events `step`, then `answer` or `problem`.",
            "content": {calls.EVENTS_TYPE: {"schema": {"type": "string"}}},
        }
    },
)
async def deep(request: Request, body: DeepQuestion) -> Response:
    """A model writes its own search, within a budget. Without one that answers: the best evidence.

    With `Accept: text/event-stream` its steps come as they happen.
    """
    if calls.EVENTS_TYPE not in request.headers.get("accept", ""):
        return await answer(request, lambda memory: _asked(body, memory))
    service = service_of(request)
    memory = service.view(caller_of(request).namespace)
    return calls.streamed(service, lambda on_step: _asked(body, memory, on_step))


@router.get("/gaps", summary="Questions without an answer", responses={200: {"model": Gaps}})
async def gaps(request: Request, query: Annotated[GapQuery, Query()]) -> Response:
    """What memory could not answer, the most asked first."""
    status = None if query.status == "all" else query.status
    return await answer(request, lambda memory: memory.gaps(status))


@router.post("/extract", summary="Take facts out", responses={200: {"model": Extracted}})
async def extract(request: Request, body: ExtractWish) -> Response:
    """At most 20 lasting facts of a conversation, each bound to its turns."""
    budget = None if body.budget is None else body.budget.budget()
    return await answer(request, lambda m: m.extract(body.conversation_id, budget=budget))


@router.post("/dream", summary="Run one dream", responses={200: {"model": DreamReport}})
async def dream(request: Request, body: DreamWish) -> Response:
    """Open gaps are explored over what is known now, restatements linked. It never deletes."""
    budget = None if body.budget is None else body.budget.budget()
    return await answer(request, lambda m: m.dream(model=body.model, budget=budget))


@router.get("/traces", summary="How answers were found", responses={200: {"model": Traces}})
async def traces(request: Request, query: Annotated[TraceQuery, Query()]) -> Response:
    """The newest of those that were kept."""
    return await answer(request, lambda memory: memory.traces(query.limit))


@router.get("/traces/{trace_id}", summary="One trace", responses={200: {"model": DeepAnswer}})
async def trace(request: Request, trace_id: Name) -> Response:
    """An answer with all its steps, to be shown again."""
    return await answer(request, lambda memory: memory.trace(trace_id))
