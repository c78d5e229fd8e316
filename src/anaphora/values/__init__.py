"""The values that calls take and give back, frozen: those of turns and memories by their names.

Its modules are imported when needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anaphora.values.conversations import *  # noqa: F403
    from anaphora.values.memories import *  # noqa: F403

_MODULES = ("conversations", "memories")


def __getattr__(name: str) -> Any:
    for part in _MODULES:
        module = import_module(f"{__name__}.{part}")
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
