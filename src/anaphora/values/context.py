"""The frozen values of what is put together for an agent within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

LEAST_BUDGET: Final = 120
"""Tokens of a package or a warm-up below which nothing useful can be said, on every surface."""


@dataclass(frozen=True, slots=True)
class ContextMemory:
    """A section, module, observation or diary entry of a package: an excerpt of its own words.

    `turns` are those (`conversation#index`) that the text of a session or of a rule quotes whole.
    """

    id: str
    kind: str
    title: str
    text: str
    score: float
    path: str | None = None
    tokens: int = 0
    importance: int | None = None
    created_at: datetime | None = None
    start_line: int | None = None
    end_line: int | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    project: str | None = None
    turns: tuple[str, ...] = ()
