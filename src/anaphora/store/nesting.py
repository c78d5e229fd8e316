"""How deep a JSON value is nested: for readers of what others wrote, which call themselves.

It never calls itself, so that no depth is too much for it; what Python's own decoder bears differs
from one version to the next.
"""

from __future__ import annotations

from typing import Any, Final

DEEPEST: Final = 200
"""Lists and objects within one another: far more than any export has."""


def is_too_deep(value: object, text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether `value`, read from `text[start:end]`, is nested deeper than `DEEPEST`."""
    # Nearly every value is settled by how often its text opens anything.
    if text.count("[", start, end) + text.count("{", start, end) <= DEEPEST:
        return False
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        level = [
            part
            for container in level
            if isinstance(container, dict | list)
            for part in (container.values() if isinstance(container, dict) else container)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True
