"""Which memory a command works on: the options before the command's name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from anaphora.memory import Memory

__all__ = ["Where", "opened"]


@dataclass(frozen=True, slots=True)
class Where:
    """Home, namespace and thread directory as given on the command line."""

    home: Path | None = None
    namespace: str = "default"
    conversations: Path | None = None


def opened(context: typer.Context, *, warm: bool = False) -> Memory:
    """The memory that the command line names. `warm` starts loading the model at once."""
    where: Where = context.obj
    return Memory.open(
        where.home,
        namespace=where.namespace,
        conversations_dir=where.conversations,
        warm=warm,
    )
