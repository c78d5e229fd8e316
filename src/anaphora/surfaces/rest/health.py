"""`/health`: whether this server can serve now; `/health/live`: whether its process answers.

In: nothing. Out: every part with its state, 200 when all are well and 503 when one is not.
"""

from __future__ import annotations

from dataclasses import replace

from fastapi import Request
from starlette.responses import Response

from anaphora.api.memory import Memory
from anaphora.ops.doctor.health import Health
from anaphora.surfaces.rest.calls import answer, opens_all
from anaphora.surfaces.rest.permissions import lane_router
from anaphora.surfaces.rest.shapes import HealthShape, Live

router = lane_router("care", "")


@router.get(
    "/health",
    summary="Whether all can be served",
    responses={200: {"model": HealthShape}, 503: {"model": HealthShape}},
)
async def health(request: Request) -> Response:
    """The write path, the index, the embedder and the disk, looked at now.

    Jobs are those of all namespaces; who does not open them all is told of the asked one's.
    """
    whole = opens_all(request)

    def seen(memory: Memory) -> Health:
        found = memory.health()
        return found if whole else replace(found, jobs=memory.stats().jobs)

    return await answer(request, seen, lambda seen: 200 if seen.ok else 503)


@router.get("/health/live", summary="Whether the process answers", responses={200: {"model": Live}})
async def live(request: Request) -> Response:
    """Nothing is looked at: an answer is the answer."""
    return Response('{"ok":true}', media_type="application/json")
