"""What every contestant can do, as the child process calls it; and what a child is told to open.

In: texts with ids, in spaces that are kept apart (chats, users, projects). Out: ids, best first.
It holds no contestant and no measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from bench.compare.vectors import Vectors

__all__ = ["Opening", "Store", "Texts", "Waiting"]

Texts = Sequence[tuple[str, str, str]]
"""(id, text, time in ISO 8601 or "") of texts to keep."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Where to keep things, and what to embed with. `chroma_model` and `known` may be missing;
    `now` fixes the clock of a contestant that ranks by age (ISO 8601, "" for the real time)."""

    folder: Path
    vectors: Vectors
    model: Path
    chroma_model: Path | None = None
    known: Path | None = None
    now: str = ""


class Store(Protocol):
    """A contestant, opened on a folder. `embedding` is seconds spent on embedding so far."""

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder until now."""

    def add(self, space: str, texts: Texts) -> None:
        """Keep texts, by the product's own bulk call where it has one."""

    def search(self, space: str, query: str, k: int) -> list[str]:
        """At most `k` ids, best first."""

    def every(self, space: str) -> list[tuple[str, str]]:
        """(id, text) of all that is kept."""

    def delete(self, space: str, item: str) -> None:
        """Remove one text by the product's own call."""

    def close(self) -> None:
        """Let go of everything, as a user's program does at its end."""


@runtime_checkable
class Waiting(Protocol):
    """A contestant that does some of its work behind its calls."""

    def ready(self) -> None:
        """Wait until that is done."""
