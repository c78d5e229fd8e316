"""`anaphora audit`: what was done, by whom and when, without a word of it."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from anaphora.core.short_ids import short_place
from anaphora.core.shown_times import shown_minute
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, give, shown
from anaphora.surfaces.cli.progress import READ, long_work
from anaphora.surfaces.cli.where import opened
from anaphora.surfaces.meanings import meaning
from anaphora.surfaces.wire import counted
from anaphora.values.audit import AuditAction, AuditEntry, AuditReport, AuditStatus

app = typer.Typer(no_args_is_help=True, help="A trail of what was done, by whom and when.")
_IDS = 3


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="audit")


@app.command()
def on(context: typer.Context, as_json: Json = False) -> None:
    """Record a trail of this namespace from now on."""
    with opened(context, begins=True) as memory:
        found = memory.audit.on()
    give(found, _show_status, as_json=as_json)


@app.command()
def off(context: typer.Context, as_json: Json = False) -> None:
    """Stop recording. The entries that exist stay."""
    with opened(context) as memory:
        found = memory.audit.off()
    give(found, _show_status, as_json=as_json)


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show whether a trail is recorded, how many entries it has, and its last link."""
    with opened(context) as memory:
        found = memory.audit.status()
    give(found, _show_status, as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help=meaning("limit"))] = 50,
    before: Annotated[int | None, typer.Option(min=1, help=meaning("before", "/v1/audit"))] = None,
    action: Annotated[str | None, typer.Option(help=meaning("action", "/v1/audit"))] = None,
    about: Annotated[str | None, typer.Option(help=meaning("about", "/v1/audit"))] = None,
    question: Annotated[str | None, typer.Option(help=meaning("question", "/v1/audit"))] = None,
    as_json: Json = False,
) -> None:
    """Show entries, the last first."""
    with opened(context) as memory:
        found = memory.audit.show(
            limit=limit,
            before=before,
            action=cast(AuditAction | None, action),
            about=about,
            question=question,
        )
    give(found, _show_entries, as_json=as_json)


@app.command()
def verify(
    context: typer.Context,
    tip: Annotated[str | None, typer.Option(help=meaning("tip", "/v1/audit/verify"))] = None,
    as_json: Json = False,
) -> None:
    """Follow the whole trail; exit code 1 where an entry does not follow from the one before."""
    with opened(context) as memory, long_work("Verifying", kept=READ, quiet=as_json):
        found = memory.audit.verify(tip)
    give(found, _show_report, as_json=as_json)
    if found.problem is not None:
        raise typer.Exit(1)


def _show_status(found: AuditStatus) -> None:
    out = console()
    out.print(f"{'on' if found.on else 'off'}, {counted(found.entries, 'entry', 'entries')}")
    if found.tip:
        out.print(shown(f"tip {found.tip}"))


def _show_entries(found: tuple[AuditEntry, ...]) -> None:
    out = console()
    for one in found:
        who = " ".join(part for part in (one.surface, one.token, one.agent) if part)
        ids = " ".join(map(short_place, one.ids[:_IDS]))
        more = f" and {one.count - _IDS} more" if one.count > _IDS and ids else ""
        asked = f" question {one.query[:8]}" if one.query else ""
        number = "" if ids or not one.count else f" {one.count}"
        what = f"{one.action} {one.lane}{number} {ids}{more}{asked}".strip()
        out.print(shown(f"{one.number:>6} {shown_minute(one.at, seconds=True)} {who}: {what}"))
    if not found:
        out.print("no entries")


def _show_report(found: AuditReport) -> None:
    out = console()
    if found.problem is None:
        out.print(f"{counted(found.entries, 'entry', 'entries')}: each follows from the last")
        if found.tip:
            out.print(shown(f"tip {found.tip} (keep it elsewhere, and give it to --tip later)"))
        return
    one = found.problem
    out.print(shown(f"{one.fault} from entry {one.number} on: {one.detail}", "red"))
