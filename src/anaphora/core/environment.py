"""The variables of this process: the only place that reads them, and nothing else is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """All variables, also for those that pass them on to another process."""
    return os.environ


def set_default(name: str, value: str) -> None:
    """Set a variable that is not set, for a library that reads it."""
    os.environ.setdefault(name, value)
