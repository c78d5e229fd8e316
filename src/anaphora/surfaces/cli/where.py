"""What the words of a command line mean: the memory that a command works on, paths, times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True)
class Where:
    """Home, namespace and thread directory as given on the command line."""

    home: Path | None = None
    namespace: str = "default"
    conversations: Path | None = None


def place(given: str | Path) -> Path:
    """A path of the command line. A blank one is what a variable leaves that is not set."""
    if not str(given).strip():
        raise typer.BadParameter("must not be blank")
    return Path(given)


def time_of(name: str, text: str | None) -> datetime | None:
    """The time that an option gives, in UTC unless it says otherwise. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(name, text, "expected a time like 2026-03-01T12:00:00Z") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def opened(context: typer.Context, *, warm: bool = False, begins: bool = False) -> Memory:
    """The memory that the command line names. `warm` starts loading the model at once.

    Only a command that `begins` a namespace takes one that is not there; `NotFound` otherwise.
    """
    where: Where = context.obj
    memory = Memory.open(
        where.home,
        namespace=where.namespace,
        conversations_dir=where.conversations,
        warm=warm,
    )
    if not begins and where.namespace not in memory.namespaces():
        memory.close()
        raise NotFound("namespace", where.namespace)
    return memory
