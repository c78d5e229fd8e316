"""The kinds of hits of a search: what declares one, and those of the kernel.

`container.feature.search_kinds` lists those of the program. Apart from `search`, as every start of
the program loads the declarations of features.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MEMORY", "NOTE", "TOOL_CALL", "TURN", "HitKind"]


class HitKind(NamedTuple):
    """A kind of hits that a lane gives; `by_default`: searched where a search names no kinds."""

    name: str
    by_default: bool = True


MEMORY: Final = HitKind("memory")
NOTE: Final = HitKind("note")
TURN: Final = HitKind("turn")
TOOL_CALL: Final = HitKind("tool_call", by_default=False)
"""Tool calls are never mixed with what people said."""
