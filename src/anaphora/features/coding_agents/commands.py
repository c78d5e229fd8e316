"""`anaphora setup`, `anaphora hook`: configures coding agents, and runs as their hook."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from typing import Annotated

import typer

from anaphora.features.coding_agents.setup.clients import ABILITIES, CLIENTS, entries
from anaphora.features.coding_agents.setup.files import FileChange, plan, plan_undo
from anaphora.features.coding_agents.setup.transcripts import waiting_transcripts
from anaphora.features.coding_agents.setup.trying import Trial, refuse_dead_server, try_client
from anaphora.features.coding_agents.setup.written import clients_set_up
from anaphora.settings import client_folders
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import EXIT_INPUT, EXIT_PARTLY, confirmed, console, emit, styled
from anaphora.surfaces.cli.where import Where, open_memory, typed_address
from anaphora.surfaces.cli.words import command_line, program_words
from anaphora.surfaces.wire import counted
from anaphora.system import resident
from anaphora.system.environment import environment


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

    What was written is tried before it is called done: a sentence is stored and recalled by the
    very command that the agent runs.
    """
    command = _command(context.obj)
    planned_entries = entries(client, client_folders(), command)
    if not undo:
        refuse_dead_server()
    changes = plan_undo(planned_entries) if undo else plan(planned_entries)
    todo = [change for change in changes if not change.nothing]
    refused_changes = [change for change in changes if change.refused]
    if not as_json:
        _show_changes(todo, refused_changes)
    agreed = _make(todo, undo=undo, asks=not (yes or as_json)) if todo and not dry_run else False
    is_applied = bool(agreed)
    tries = not (undo or dry_run or refused_changes) and (is_applied or yes)
    trials = list(try_client(client, client_folders(), program_words())) if tries else []
    waiting = waiting_transcripts(client, client_folders()) if tries else None
    if as_json:
        emit(
            {
                "client": client,
                "made": is_applied,
                "trials": trials,
                **({} if waiting is None else {"transcripts": waiting}),
                "changes": [{"path": str(edit.path), "diff": edit.shown()} for edit in todo],
                "refused": [
                    {"path": str(edit.path), "reason": edit.refused, "by_hand": edit.by_hand}
                    for edit in refused_changes
                ],
            }
        )
    else:
        if todo and not dry_run and not agreed:
            console().print("nothing was changed")
        _show_done(client, made=is_applied, undo=undo, partly=bool(refused_changes), trials=trials)
        if waiting is not None:
            words = [*command, "import", waiting.folder]
            count = counted(waiting.count, "earlier transcript")
            offer = f"{count} in {waiting.folder}; to import: {command_line(words)}"
            console().print(styled(offer))
            if not yes and confirmed("Import them now?"):
                # A separate process: it shows its own progress and can be interrupted.
                subprocess.run(words, check=False)  # noqa: S603 - the words of this program
    if sync is not None and not undo and not dry_run:
        _begin_syncing(context, sync)
    # A "no" is an answer; at the end of input, nothing was done.
    _exit_unless_done(changes, trials, unmade=agreed is None)


def _make(todo: Sequence[FileChange], *, undo: bool, asks: bool) -> bool | None:
    """Make the changes; whether the user agreed, None at the end of input."""
    agreed = confirmed("Make these changes?") if asks else True
    if agreed:
        for change in todo:
            change.make()
        if undo and not clients_set_up(client_folders()):
            resident.end(environment())
    return agreed


def _begin_syncing(context: typer.Context, remote: str) -> None:
    """Set up syncing with a remote, unless this namespace is synced already, and say so."""
    with open_memory(context, begins=True) as memory:
        status = memory.sync.status()
        if not status.project:
            status = memory.sync.init(typed_address(remote), name=platform.node())
    console(stderr=True).print(styled(f"synced with {status.remote}: `anaphora sync now`"))


def _exit_unless_done(
    changes: Sequence[FileChange],
    trials: Sequence[Trial],
    *,
    unmade: bool,
) -> None:
    """Exit with an error code unless everything was done."""
    refused_changes = [change for change in changes if change.refused]
    if refused_changes:
        # Files that need no change count as done.
        raise typer.Exit(EXIT_PARTLY if len(changes) > len(refused_changes) else EXIT_INPUT)
    if any(trial.problem for trial in trials):
        raise typer.Exit(EXIT_PARTLY)
    if unmade:
        raise typer.Exit(1)


def hook(
    client: Annotated[str, typer.Argument(help="The client that calls.")],
) -> None:
    """What a client's hook runs. Reads the hook's JSON from standard input; never fails."""
    # `quick.hook` has handled plain calls already.
    from anaphora.features.coding_agents.hooks.client import run_hook

    run_hook(client, {})


def _show_done(client: str, *, made: bool, undo: bool, partly: bool, trials: list[Trial]) -> None:
    terminal = console()
    failed_trials = [trial for trial in trials if trial.problem]
    for trial in trials:
        if trial.problem:
            step = f"the {trial.what} does not work ({trial.step}): {trial.problem}"
            terminal.print(styled(step, "red"))
        else:
            answer_note = f"the {trial.what} answered in {trial.seconds:.1f} s"
            terminal.print(styled(f"{answer_note}: a sentence was stored and recalled", "dim"))
    if failed_trials:
        terminal.print(
            styled(f"setup is incomplete; to repair it, run: {failed_trials[0].remedy}", "yellow")
        )
    elif partly and made:
        terminal.print("the rest is done; make the changes above yourself")
    elif made and undo:
        terminal.print("undone")
    elif made:
        terminal.print(styled(f"Done. Restart {client} to use Anaphora."))
    if trials and not undo and not failed_trials:
        terminal.print(styled(ABILITIES[client]))
        terminal.print(
            styled("the same memory on your other devices: `anaphora sync init REMOTE`", "dim")
        )


def _command(where: Where) -> list[str]:
    """The command with which the client starts this same Anaphora, in any environment."""
    start = program_words()
    if where.home is not None:
        start += ["--home", str(where.home.expanduser().absolute())]
    if where.conversations is not None:
        start += ["--conversations-dir", str(where.conversations.expanduser().absolute())]
    if where.namespace != "default":
        start += ["--namespace", where.namespace]
    return start


def _show_changes(changes: list[FileChange], refused: list[FileChange]) -> None:
    terminal = console()
    if not changes and not refused:
        terminal.print("nothing to change")
    for change in changes:
        terminal.print(styled(f"{change.path}: {change.told}"))
    for change in changes:
        for line in change.shown().splitlines():
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            terminal.print(styled(line, style))
    for change in refused:
        terminal.print(styled(f"{change.path}: {change.refused}", "yellow"))
        instruction = (
            "Take this out of it" if change.undoes else "Next to the existing entries, add this"
        )
        terminal.print(f"{instruction} yourself:")
        for line in change.by_hand.splitlines():
            terminal.print(styled(line))
