"""Which routes only read. What is not marked changes something: a read-only token may not call it.

In: the endpoint of a route. Out: whether it reads. GET reads by its nature, and every other method
has to be marked, so that a new route cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request

from anaphora.surfaces.rest.calls import READS, caller_of, reads
from anaphora.surfaces.rest.problems import Problem

__all__ = ["lane_router", "permitted", "reads", "reads_only"]

EndpointT = TypeVar("EndpointT", bound=Callable[..., Any])


def reads_only(endpoint: EndpointT) -> EndpointT:
    """Mark an endpoint that answers a question in the body of a POST."""
    setattr(endpoint, READS, True)
    return endpoint


async def permitted(request: Request) -> None:
    """Refuse a read-only token what would change something."""
    token = caller_of(request).token
    if token is None or not token.read_only:
        return
    if not reads(request.scope["route"], request.method):
        raise Problem(403, "read_only", "this token only reads")


def lane_router(lane: str, prefix: str = "/v1") -> APIRouter:
    """An empty router whose routes refuse what a read-only token may not do."""
    return APIRouter(prefix=prefix, tags=[lane], dependencies=[Depends(permitted)])
