"""The routes of deep recall: questions that need more than a search, and their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.features.deep.calls import DeepCalls
from anaphora.features.deep.schemas import BudgetBody, DeepQuestion, GapQuery, Gaps
from anaphora.features.deep.values import Budget, DeepAnswer
from anaphora.surfaces.rest import calls
from anaphora.surfaces.rest.calls import answer, caller_of, in_threads_of, service_of
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.surfaces.wire import refuse_unknown

router = LaneRouter("deep")
router.offer(DeepCalls, bodies={Budget: BudgetBody})


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
