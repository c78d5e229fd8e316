"""`anaphora audit`: the actions in a namespace with time and author, without their content."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from anaphora.calls.parameters import PARAMETERS
from anaphora.features.audit.values import (
    ABOUT,
    ACTION,
    BEFORE,
    QUESTION,
    TIP,
    AuditEntry,
    AuditReport,
    AuditStatus,
)
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, present, styled
from anaphora.surfaces.cli.progress import READ, long_work
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.wire import counted
from anaphora.text.short_ids import short_place
from anaphora.text.shown_times import shown_minute
from anaphora.values.actions import AuditAction

app = typer.Typer(no_args_is_help=True, help="An audit trail: what was done, by whom and when.")
_IDS = 3


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="audit")


@app.command()
def on(context: typer.Context, as_json: Json = False) -> None:
    """Record a trail of this namespace from now on."""
    with open_memory(context, begins=True) as memory:
        state = memory.audit.on()
    present(state, _show_status, as_json=as_json)


@app.command()
def off(context: typer.Context, as_json: Json = False) -> None:
    """Stop recording. The entries that exist stay."""
    with open_memory(context) as memory:
        state = memory.audit.off()
    present(state, _show_status, as_json=as_json)


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show whether a trail is recorded, how many entries it has, and its last link."""
    with open_memory(context) as memory:
        state = memory.audit.status()
    present(state, _show_status, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help=PARAMETERS["limit"].meaning)] = 50,
    before: Annotated[int | None, typer.Option(min=1, help=BEFORE)] = None,
    action: Annotated[str | None, typer.Option(help=ACTION)] = None,
    about: Annotated[str | None, typer.Option(help=ABOUT)] = None,
    question: Annotated[str | None, typer.Option(help=QUESTION)] = None,
    as_json: Json = False,
) -> None:
    """Show entries, newest first."""
    with open_memory(context) as memory:
        events = memory.audit.show(
            limit=limit,
            before=before,
            action=cast(AuditAction | None, action),
            about=about,
            question=question,
        )
    present(events, _show_entries, as_json=as_json)


@app.command()
def verify(
    context: typer.Context,
    tip: Annotated[str | None, typer.Option(help=TIP)] = None,
    as_json: Json = False,
) -> None:
    """Verify the whole trail; exit code 1 if an entry does not follow from the previous one."""
    with open_memory(context) as memory, long_work("Verifying", kept=READ, quiet=as_json):
        report = memory.audit.verify(tip)
    present(report, _show_report, as_json=as_json)
    if report.problem is not None:
        raise typer.Exit(1)


def _show_status(state: AuditStatus) -> None:
    terminal = console()
    terminal.print(f"{'on' if state.on else 'off'}, {counted(state.entries, 'entry', 'entries')}")
    if state.tip:
        terminal.print(styled(f"tip {state.tip}"))


def _show_entries(events: tuple[AuditEntry, ...]) -> None:
    terminal = console()
    for event in events:
        who = " ".join(part for part in (event.surface, event.token, event.agent) if part)
        ids = " ".join(map(short_place, event.ids[:_IDS]))
        more_note = f" and {event.count - _IDS} more" if event.count > _IDS and ids else ""
        question = f" question {event.query[:8]}" if event.query else ""
        number = "" if ids or not event.count else f" {event.count}"
        action = f"{event.action} {event.lane}{number} {ids}{more_note}{question}".strip()
        terminal.print(
            styled(f"{event.number:>6} {shown_minute(event.at, seconds=True)} {who}: {action}")
        )
    if not events:
        terminal.print("no entries")


def _show_report(report: AuditReport) -> None:
    terminal = console()
    if report.problem is None:
        terminal.print(f"{counted(report.entries, 'entry', 'entries')}: each follows from the last")
        if report.tip:
            terminal.print(
                styled(f"tip {report.tip} (save it elsewhere, and pass it to --tip later)")
            )
        return
    problem = report.problem
    terminal.print(
        styled(f"{problem.fault} from entry {problem.number} on: {problem.detail}", "red")
    )
