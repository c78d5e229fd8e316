"""The routes of deep recall: questions that need more than a search, and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.features.deep.schemas import (
    DeepQuestion,
    DreamWish,
    ExtractWish,
    GapQuery,
    Gaps,
    TraceQuery,
    Traces,
)
from anaphora.features.deep.values import DeepAnswer, DreamReport, Extracted
from anaphora.surfaces.rest import calls
from anaphora.surfaces.rest.calls import answer, caller_of, in_threads_of, service_of
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.rest.schemas import Name
from anaphora.surfaces.wire import refuse_unknown

router = LaneRouter("deep")


def _ask(
    body: DeepQuestion, memory: Memory, on_step: Callable[[Any], None] | None = None
) -> DeepAnswer:
    refuse_unknown(memory, body.conversation_id)
    return memory.deep_recall(**body.given(), on_step=on_step)


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
@in_threads_of("deep")
async def deep_recall(request: Request, body: DeepQuestion) -> Response:
    """A model writes its own search, within a budget. Without one that answers: the best evidence.

    With `Accept: text/event-stream` its steps come as they happen.
    """
    if calls.EVENTS_TYPE not in request.headers.get("accept", ""):
        return await answer(request, lambda memory: _ask(body, memory))
    memory = service_of(request).view(caller_of(request).namespace)
    return calls.streamed(request, lambda on_step: _ask(body, memory, on_step))


@router.answers("GET /gaps", "Questions without an answer", Gaps)
def gaps(memory: Memory, query: GapQuery) -> Any:
    """What memory could not answer, the most asked first."""
    return memory.gaps(None if query.status == "all" else query.status)


@router.answers("POST /extract", "Extract facts", Extracted, kind="deep")
def extract(memory: Memory, body: ExtractWish) -> Any:
    """At most 20 lasting facts of a conversation, each bound to its turns."""
    return memory.extract(**body.given())


@router.answers("POST /dream", "Run one dream", DreamReport, kind="deep")
def dream(memory: Memory, body: DreamWish) -> Any:
    """Open gaps are explored over what is known now, restatements linked. It never deletes."""
    return memory.dream(**body.given())


@router.answers("POST /jobs", "Run queued jobs", DreamReport, kind="deep")
def run_jobs(memory: Memory) -> Any:
    """What ended sessions have queued: extractions, then a dream that asks no model."""
    return memory.run_jobs()


@router.answers("GET /traces", "How answers were found", Traces)
def traces(memory: Memory, query: TraceQuery) -> Any:
    """The newest of the stored ones."""
    return memory.traces(query.limit)


@router.answers("GET /traces/{trace_id}", "One trace", DeepAnswer)
def trace(memory: Memory, trace_id: Name) -> Any:
    """An answer with all its steps, to be shown again."""
    return memory.trace(trace_id)
