"""`anaphora setup`, `anaphora hook`: into a coding agent's configuration, and called by it."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.core.config import client_folders
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import EXIT_INPUT, EXIT_PARTLY, console, emit, shown
from anaphora.surfaces.cli.sync import begin_syncing
from anaphora.surfaces.cli.where import Where
from anaphora.surfaces.hooks.protocols import PROTOCOLS
from anaphora.surfaces.setup.clients import ABILITIES, CLIENTS, entries
from anaphora.surfaces.setup.files import Change, plan, plan_undo
from anaphora.surfaces.setup.program import program_words
from anaphora.surfaces.setup.trying import Trial, refuse_dead_server, try_hook, try_server


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(setup)
    app.command(hidden=True)(hook)


def setup(
    context: typer.Context,
    client: Annotated[str, typer.Argument(help=f"One of {', '.join(CLIENTS)}.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove Anaphora again.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    sync: Annotated[
        str | None,
        typer.Option(metavar="REMOTE", help="Begin syncing with it, too: as `sync init REMOTE`."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set up Anaphora in a coding agent: the memory server and, if the agent has them, hooks.

    What was written is tried before it is called done.
    """
    command = _command(context.obj)
    wanted = entries(client, client_folders(), command)
    if not undo:
        refuse_dead_server()
    changes = plan_undo(wanted) if undo else plan(wanted)
    todo = [change for change in changes if not change.nothing]
    refused = [change for change in changes if change.refused]
    if not as_json:
        _show(todo, refused)
        _show_refused(refused)
    made = bool(todo) and not dry_run and (yes or as_json or _confirmed())
    if made:
        for change in todo:
            change.make()
    trials = _tried(client, command) if not (undo or dry_run or refused) and (made or yes) else []
    if as_json:
        emit(
            {
                "client": client,
                "made": made,
                "trials": trials,
                "changes": [{"path": str(one.path), "diff": one.shown()} for one in todo],
                "refused": [
                    {"path": str(one.path), "reason": one.refused, "by_hand": one.by_hand}
                    for one in refused
                ],
            }
        )
    else:
        _show_done(client, made=made, undo=undo, partly=bool(refused), trials=trials)
    if sync is not None and not undo and not dry_run:
        begin_syncing(context, sync)
    if refused:
        # Files that are as they should be count as done.
        raise typer.Exit(EXIT_PARTLY if len(changes) > len(refused) else EXIT_INPUT)
    if any(trial.problem for trial in trials):
        raise typer.Exit(EXIT_PARTLY)
    if todo and not made and not dry_run:
        raise typer.Exit(1)


def hook(
    client: Annotated[str, typer.Argument(help="The client that calls.")],
) -> None:
    """What a client's hook runs. Reads the hook's JSON from standard input; never fails."""
    # `cli.run_at_once` has answered already where the words are plain.
    from anaphora.surfaces.hooks.client import run_hook

    run_hook(client, {})


def _tried(client: str, command: list[str]) -> list[Trial]:
    trials = [try_server(command)]
    return [*trials, try_hook(client, command)] if client in PROTOCOLS else trials


def _show_done(client: str, *, made: bool, undo: bool, partly: bool, trials: list[Trial]) -> None:
    out = console()
    for trial in trials:
        answered = f"the {trial.what} answered in {trial.seconds:.1f} s"
        failed = f"the {trial.what} does not work: {trial.problem}"
        out.print(shown(failed, "red") if trial.problem else shown(answered, "dim"))
    if partly and made:
        out.print("the rest is done; what stands above is yours to do")
    elif made and undo:
        out.print("undone")
    elif made:
        out.print(shown(f"done; start {client} again to have its memory"))
    if trials and not undo:
        out.print(shown(ABILITIES[client]))
        out.print(
            shown("the same memory on your other devices: `anaphora sync init REMOTE`", "dim")
        )


def _command(where: Where) -> list[str]:
    """How the client starts this very Anaphora, whatever its own environment is."""
    start = program_words()
    if where.home is not None:
        start += ["--home", str(where.home.expanduser().absolute())]
    if where.conversations is not None:
        start += ["--conversations-dir", str(where.conversations.expanduser().absolute())]
    if where.namespace != "default":
        start += ["--namespace", where.namespace]
    return start


def _show(changes: list[Change], refused: list[Change]) -> None:
    out = console()
    if not changes and not refused:
        out.print("nothing to change")
    for change in changes:
        for line in change.shown().splitlines():
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            out.print(shown(line, style))


def _show_refused(changes: list[Change]) -> None:
    out = console()
    for change in changes:
        out.print(shown(f"{change.path}: {change.refused}", "yellow"))
        what = "Take this out of it" if change.undoes else "Next to the existing entries, add this"
        out.print(f"{what} yourself:")
        for line in change.by_hand.splitlines():
            out.print(shown(line))


def _confirmed() -> bool:
    try:
        return typer.confirm("Make these changes?")
    except typer.Abort:
        # Nobody is there to ask.
        return False
