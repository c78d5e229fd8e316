"""`anaphora stats` and `anaphora doctor`: what is there, and whether it is well."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from anaphora.core.display import one_line
from anaphora.surfaces.cli.output import console, emit, table
from anaphora.surfaces.cli.where import opened
from anaphora.values.conversations import FINISH_VECTORS

Json = Annotated[bool, typer.Option("--json", help="JSON for programs.")]


def stats(context: typer.Context, as_json: Json = False) -> None:
    """What this namespace holds, and its size on disk."""
    with opened(context) as memory:
        found = memory.stats()
    if as_json:
        emit(found)
        return
    rows: list[tuple[str, object]] = [
        ("home", found.home),
        ("namespace", found.namespace),
        ("conversations", f"{found.conversations:,}"),
        ("turns", f"{found.turns:,}"),
        ("turns indexed", f"{found.indexed:,}"),
        ("vectors", f"{found.vectors:,}"),
        ("vectors to come", _to_come(found.pending)),
        ("memories", f"{found.memories:,}"),
        ("projects", f"{found.projects:,}"),
        ("files of projects", f"{found.files:,}"),
        ("sections", f"{found.sections:,}"),
        ("sections without a vector", _to_come(found.sections_pending)),
        ("notes and diary", f"{found.notes:,}"),
        ("open gaps", f"{found.gaps:,}"),
        ("jobs waiting", f"{found.jobs:,}"),
        ("traces", f"{found.traces:,}"),
        ("embedder", found.embedder),
        *[(f"disk: {part}", f"{size / 1e6:,.2f} MB") for part, size in found.bytes.items()],
    ]
    console().print(table("", ("", ""), rows))


def _to_come(vectors: int) -> str:
    return f"{vectors:,}; {FINISH_VECTORS}" if vectors else "0"


def doctor(
    context: typer.Context,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended.")] = False,
    as_json: Json = False,
) -> None:
    """Check truth, index, model and database; exit code 1 when something is wrong."""
    with opened(context) as memory:
        checks = memory.doctor(repair=repair)
    if as_json:
        emit({"ok": all(check.ok for check in checks), "checks": checks})
    else:
        out = console()
        for check in checks:
            line = Text("  ok  ", "green") if check.ok else Text(" BAD  ", "bold red")
            out.print(
                line.append(f"{check.name:<12} ", "bold").append(
                    one_line(check.detail, None), "none"
                )
            )
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
