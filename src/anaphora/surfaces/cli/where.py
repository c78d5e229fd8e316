"""What the words of a command line mean: the memory that a command works on, paths, times."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    import typer

EXIT_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True, slots=True)
class Where:
    """Home, namespace and thread directory as given on the command line."""

    home: Path | None = None
    namespace: str = "default"
    conversations: Path | None = None


def place(given: str | Path) -> Path:
    """A path of the command line. A blank one is what a variable leaves that is not set."""
    if not str(given).strip():
        import typer

        raise typer.BadParameter("must not be blank")
    return Path(given)


def opened(
    context: typer.Context,
    *,
    warm: bool = False,
    begins: bool = False,
    embedder: str | None = None,
) -> Memory:
    """The memory that the command line names; see `opened_at`."""
    where: Where = context.obj
    return opened_at(where, warm=warm, begins=begins, embedder=embedder)


def opened_at(
    where: Where, *, warm: bool = False, begins: bool = False, embedder: str | None = None
) -> Memory:
    """The memory of that place. `warm` starts loading the model at once.

    `embedder` opens it with another than its own, which may not be there any more.

    Only a command that `begins` a namespace takes one that is not there; `NotFound` otherwise.
    """
    try:
        memory = Memory.open(
            where.home,
            namespace=where.namespace,
            conversations_dir=where.conversations,
            embedder=embedder,
            share_model="running",
            warm=warm,
        )
    except KeyboardInterrupt:
        # What the command would have done has not begun.
        sys.stderr.write("Interrupted. Nothing was changed.\n")
        sys.exit(EXIT_INTERRUPTED)
    if not begins and where.namespace not in memory.namespaces():
        memory.close()
        raise NotFound("namespace", where.namespace)
    return memory


def whole_home(context: typer.Context, command: str) -> Where:
    """Home and thread folder for a command that works on all namespaces of a home.

    `InvalidInput` where the command line names one: it would be ignored.
    """
    where: Where = context.obj
    if where.namespace != "default":
        reason = f"`{command}` works on the whole home: leave --namespace out"
        raise InvalidInput("--namespace", where.namespace, reason)
    return where


def known_conversation(memory: Memory, given: str) -> str:
    """The whole id of a conversation that is given by its last characters, or whole."""
    from anaphora.store.threads.ids import check_id

    return memory.resolve_id(check_id(given), "conversation")


def note_missing(memory: Memory) -> None:
    """Say on standard error that nothing was kept at this place yet, if so.

    Nothing is wrong with asking; but who mistyped the place should know.
    """
    if not memory.home.exists():
        sys.stderr.write(f"note: there is no memory at {memory.home} yet\n")
