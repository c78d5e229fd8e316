"""`anaphora setup`, `anaphora hook`: into a coding agent's configuration, and called by it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from anaphora.core.config import client_folders
from anaphora.errors import InvalidInput
from anaphora.surfaces.cli.output import EXIT_INPUT, EXIT_PARTLY, Json, console, emit, shown
from anaphora.surfaces.cli.where import Where, opened
from anaphora.surfaces.setup.clients import CLIENTS, entries
from anaphora.surfaces.setup.files import Change, plan, plan_undo


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
    as_json: Json = False,
) -> None:
    """Set up Anaphora in a coding agent: the memory server and, if the agent has them, hooks."""
    wanted = entries(client, client_folders(), _command(context.obj))
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
    if as_json:
        emit(
            {
                "client": client,
                "made": made,
                "changes": [{"path": str(one.path), "diff": one.shown()} for one in todo],
                "refused": [
                    {"path": str(one.path), "reason": one.refused, "by_hand": one.by_hand}
                    for one in refused
                ],
            }
        )
    elif made:
        after = f"done; start {client} again to have its memory"
        partly = "the rest is done; what stands above is yours to do"
        console().print(partly if refused else "undone" if undo else after)
    if refused:
        # Files that are as they should be count as done.
        raise typer.Exit(EXIT_PARTLY if len(changes) > len(refused) else EXIT_INPUT)
    if todo and not made and not dry_run:
        raise typer.Exit(1)


def hook(
    context: typer.Context,
    client: Annotated[str, typer.Argument(help="The client that calls.")],
) -> None:
    """What a client's hook runs: brings its transcript in. Reads the hook's JSON from stdin."""
    if client not in CLIENTS:
        raise InvalidInput("client", client, f"expected one of {', '.join(CLIENTS)}")
    told = _hook_input()
    path = told.get("transcript_path")
    if not isinstance(path, str) or not path.strip():
        raise InvalidInput("transcript_path", path, "the hook's JSON has no transcript_path")
    with opened(context, begins=True) as memory:
        # The client waits for its hook: words are kept now, vectors come with the next question.
        form = client.replace("-", "_")
        report = memory.import_(Path(path).expanduser(), format=form, embed=False)
        if told.get("hook_event_name") == "SessionEnd":
            for conversation_id in report.conversation_ids:
                memory.end_session(conversation_id)
    for problem in report.problems:
        said = f"{problem.path}: {problem.place}: {problem.reason}"
        console(stderr=True).print(shown(said))


def _hook_input() -> dict[str, Any]:
    try:
        told = json.loads(sys.stdin.read() or "{}")
    except ValueError as error:
        raise InvalidInput("stdin", None, f"expected the hook's JSON: {error}") from error
    return told if isinstance(told, dict) else {}


def _command(where: Where) -> list[str]:
    """How the client starts this very Anaphora, whatever its own environment is."""
    script = Path(sys.executable).with_name(
        "anaphora.exe" if sys.platform == "win32" else "anaphora"
    )
    start = [str(script)] if script.exists() else [sys.executable, "-m", "anaphora"]
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
