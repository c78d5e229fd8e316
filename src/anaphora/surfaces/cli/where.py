"""Turns the words of a command line into the memory, paths and ids that a command works on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.api.memory import Memory
from anaphora.errors import AnaphoraError, InvalidInput, NoHome, NotFound
from anaphora.settings import load_settings
from anaphora.store.home.sealing import Home
from anaphora.surfaces.cli.grammar import CONVERSATIONS, HOME, NAMESPACE

if TYPE_CHECKING:
    import typer

_PATHS: Final = (HOME.parameter, CONVERSATIONS.parameter)

EXIT_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as in shells."""


@dataclass(frozen=True, slots=True)
class Where:
    """Home, namespace and thread directory as given on the command line."""

    home: Path | None = None
    namespace: str = NAMESPACE.default
    conversations: Path | None = None

    @classmethod
    def of(cls, place: Mapping[str, str]) -> Where:
        """The values of leading options, none of which is blank."""
        home, folder = (Path(place[name]) if name in place else None for name in _PATHS)
        return cls(home, place.get(NAMESPACE.parameter, NAMESPACE.default), folder)


def typed_path(text: str | Path) -> Path:
    """A path of the command line. Rejects blank ones, as an unset variable leaves them."""
    if not str(text).strip():
        import typer

        raise typer.BadParameter("must not be blank")
    return Path(text)


def typed_address(text: str) -> str:
    """An address of the command line; a folder is relative to the working directory."""
    return text if "://" in text else str(Path(text).expanduser().absolute())


def open_memory(
    context: typer.Context,
    *,
    warm: bool = False,
    begins: bool = False,
    embedder: str | None = None,
) -> Memory:
    """The memory selected on the command line; see `open_memory_at`."""
    home_options: Where = context.obj
    return open_memory_at(home_options, warm=warm, begins=begins, embedder=embedder)


def open_memory_at(
    where: Where, *, warm: bool = False, begins: bool = False, embedder: str | None = None
) -> Memory:
    """Open this memory. `warm` starts loading the model at once.

    `embedder` replaces the configured one, which may no longer be available.

    Only a command that `begins` something may name a home or a namespace that does not exist yet:
    the others raise `NoHome` and `NotFound`, so that a mistyped one is no empty memory.
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
        # The command's own work has not started.
        sys.stderr.write("Interrupted. Nothing was changed.\n")
        sys.exit(EXIT_INTERRUPTED)
    if not begins:
        try:
            refuse_missing_home(where)
            if where.namespace not in memory.namespaces():
                raise NotFound("namespace", where.namespace)
        except AnaphoraError:
            memory.close()
            raise
    return memory


def home_of(where: Where) -> Home:
    """The home at this place."""
    return Home.of(load_settings(where.home, where.conversations))


def refuse_missing_home(where: Where) -> None:
    """Raise `NoHome` if there is no memory at this place."""
    home = home_of(where)
    if not home.is_begun:
        raise NoHome(home.root)


def require_whole_home(context: typer.Context, command: str, *, begins: bool = False) -> Where:
    """The home and thread folder for a command that works on all namespaces of a home.

    `InvalidInput` if the command line names a namespace: it would be ignored. `NoHome` unless the
    command `begins` one, as in `open_memory_at`.
    """
    home_options: Where = context.obj
    if home_options.namespace != "default":
        reason = f"`{command}` works on the whole home: leave --namespace out"
        raise InvalidInput("--namespace", home_options.namespace, reason)
    if not begins:
        refuse_missing_home(home_options)
    return home_options


def resolve_conversation(memory: Memory, name: str) -> str:
    """The full id of a conversation that is given in full or by its first or last characters."""
    from anaphora.store.threads.ids import check_id

    return memory.resolve_id(check_id(name), "conversation")


def resolve_turn(memory: Memory, name: str) -> tuple[str, int | None]:
    """The full id of a conversation, and the index of a turn if `name` is the place of one."""
    try:
        return resolve_conversation(memory, name), None
    except (InvalidInput, NotFound):
        # A conversation's id may have this mark as well.
        owner, mark, index = name.rpartition("#")
        if not (mark and index.isdecimal()):
            raise
        return resolve_conversation(memory, owner.strip()), int(index)
