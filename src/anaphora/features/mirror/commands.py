"""`anaphora mirror`: a namespace as a folder of Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anaphora.features.mirror.values import MIRROR_EVERY, MirrorReport, MirrorStatus
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, present, styled
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.watching import watch_until_stopped
from anaphora.surfaces.cli.where import open_memory, typed_path
from anaphora.surfaces.wire import counted
from anaphora.text.shown_times import shown_minute

app = typer.Typer(
    no_args_is_help=True,
    help="Memories and notes as a folder of Markdown, to read and edit in any editor.",
)


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="mirror")


@app.command()
def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(parser=typed_path, metavar="FOLDER", help="The folder for the files.")
    ],
    plain: Annotated[
        bool, typer.Option("--plain", help="Also of an encrypted home: files are not encrypted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Mirror this namespace in a folder. Nothing is written before `mirror now`."""
    with open_memory(context, begins=True) as memory:
        status = memory.mirror.init(str(folder.expanduser().absolute()), plain=plain)
    present(status, "run `anaphora mirror now`, or `anaphora mirror watch`", as_json=as_json)


@app.command()
def now(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only, change nothing.")] = False,
    accept_deletions: Annotated[
        bool, typer.Option("--accept-deletions", help="Accept that most of the files were deleted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Import edits of the files, and write new memories to files."""
    stored_note = f"Files and memories compared so far are stored. {AGAIN}"
    with (
        open_memory(context) as memory,
        long_work("Mirroring", kept=stored_note, quiet=as_json) as progress,
    ):
        report = memory.mirror.now(
            dry_run=dry_run, accept_deletions=accept_deletions, progress=progress
        )
    present(report, _show_report, as_json=as_json)


@app.command()
def watch(
    context: typer.Context,
    every: Annotated[
        float, typer.Option(min=1, help="Seconds between two comparisons.")
    ] = MIRROR_EVERY,
) -> None:
    """Compare repeatedly until interrupted."""
    with open_memory(context) as memory:
        memory.on("mirror", _show_report)
        watch_until_stopped(memory.mirror, every, "mirroring")


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show the folder, the last comparison, and skipped files."""
    with open_memory(context) as memory:
        state = memory.mirror.status()
    present(state, _show_status, as_json=as_json)


@app.command()
def leave(context: typer.Context, as_json: Json = False) -> None:
    """Stop mirroring this namespace. Memories and files stay as they are."""
    with open_memory(context) as memory:
        memory.mirror.leave()
    present({"done": "left"}, "left", as_json=as_json)


def _show_report(report: MirrorReport) -> None:
    terminal = console()
    parts = [
        f"{counted(len(report.written), 'file')} written, {len(report.removed)} removed",
        f"{counted(len(report.edited), 'edit')}, {len(report.added)} new, "
        f"{len(report.hidden)} forgotten",
    ]
    terminal.print("; ".join(parts))
    for conflict in report.conflicts:
        winner = "file" if conflict.kept == "file" else "memory"
        line = f"both changed: {conflict.file}: the text of the {winner} is current"
        terminal.print(styled(f"{line}, the other one is in history"))
    for problem in report.problems:
        terminal.print(styled(f"left alone: {problem.file}: {problem.reason}", "yellow"))
    for file in report.waiting:
        terminal.print(styled(f"just being saved: {file}", "dim"))


def _show_status(state: MirrorStatus) -> None:
    terminal = console()
    if not state.folder:
        terminal.print("not mirrored: `anaphora mirror init FOLDER`")
        return
    last_time = "never" if state.last_compared is None else shown_minute(state.last_compared)
    terminal.print(styled(f"folder   {state.folder}"))
    terminal.print(f"compared {last_time}; {counted(state.pages, 'file')}")
    for problem in state.problems:
        terminal.print(styled(f"left alone: {problem.file}: {problem.reason}", "yellow"))
    if state.stopped is not None:
        terminal.print(styled(f"stopped: {state.stopped}", "red"))
