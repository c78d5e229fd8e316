"""The routes of the core block."""

from __future__ import annotations

from typing import Any

from anaphora.api.memory import Memory
from anaphora.features.core_block.schemas import CoreQuery, Pinned, Pinning, Unpinning
from anaphora.surfaces.rest.routing import LaneRouter
from anaphora.values.memories import CoreBlock

router = LaneRouter("memory")


@router.answers("GET /core", "The core block", CoreBlock)
def core_block(memory: Memory, query: CoreQuery) -> Any:
    """What every session starts with: pinned memories in order, then rules and preferences."""
    return memory.core_block(budget=query.budget)


@router.answers("POST /core/pin", "Pin a memory", Pinned)
def pin(memory: Memory, body: Pinning) -> Any:
    """At a position among the pinned ones, or at their end; one that is pinned already moves."""
    return {"id": memory.pin(body.id, body.position)}


@router.answers("POST /core/unpin", "Take a memory out of the core block", Pinned)
def unpin(memory: Memory, body: Unpinning) -> Any:
    """It stays out until it is pinned again."""
    return {"id": memory.unpin(body.id)}
