"""The core block as a resource for coding agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anaphora.surfaces.mcp_server.resources import Resource

if TYPE_CHECKING:
    from anaphora.api.memory import Memory


def _read_core(memory: Memory) -> str:
    from anaphora.features.core_block.recall import render_core

    return render_core(memory.core_block()) or "The core block is empty."


RESOURCES: Final = (
    Resource(
        "anaphora://core",
        "core",
        "Core block",
        "What every session starts with: pinned memories, rules and preferences.",
        _read_core,
        10,
    ),
)
