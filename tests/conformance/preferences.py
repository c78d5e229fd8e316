"""The seed's example: a preference with a path and a payload, and two facts beside it."""

from __future__ import annotations

from typing import Any

from anaphora import Memory

__all__ = ["PREFERRED", "TESTING", "VITEST", "preferring"]

VITEST = "The user prefers vitest over jest."
PREFERRED: dict[str, Any] = {
    "path": "user.preferences.testing",
    "payload": {"framework": "vitest"},
    "category": "development",
    "tags": ("testing",),
}
TESTING: dict[str, Any] = {
    "AND": [{"category": "development"}, {"tags": {"contains": "testing"}}],
}


def preferring(memory: Memory) -> Memory:
    """A memory that knows the preference and two things beside it."""
    memory.remember(VITEST, **PREFERRED)
    memory.remember("The user drinks tea.", category="kitchen", tags=("drinks",))
    memory.remember("Testing of the turbine is on Monday.", category="plant", tags=("testing",))
    return memory
