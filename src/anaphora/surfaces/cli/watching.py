"""`anaphora conversation watch`: turns come in by themselves."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from anaphora.api.memory import Memory
from anaphora.core.config import client_folders, load_settings
from anaphora.ingest.watch import IDLE, TranscriptWatch, WatchReport
from anaphora.surfaces.cli.output import console, emit, shown
from anaphora.surfaces.cli.where import Where, opened, place
from anaphora.surfaces.wire import counted

INTERVAL = 2.0


def watch(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=place, help="Transcript folders (default: those of Claude Code and Codex)."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = INTERVAL,
    idle: Annotated[
        float, typer.Option(min=0.0, help="Minutes after which a quiet session has ended.")
    ] = IDLE.total_seconds() / 60,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line a look.")] = False,
) -> None:
    """Follow the transcripts of coding agents: what is said there is remembered here.

    Runs until it is interrupted. Only files that changed are read; a session that was quiet for
    --idle minutes counts as ended, which queues what a session's end brings.
    """
    with opened(context, warm=not once, begins=True) as memory:
        following = _watch(context.obj, memory, folders, idle)
        try:
            while True:
                looked = following.look()
                for conversation_id in looked.ended:
                    memory.end_session(conversation_id)
                _tell(looked, as_json, always=once)
                if once:
                    return
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _watch(
    where: Where, memory: Memory, folders: list[Path] | None, idle: float
) -> TranscriptWatch:
    settings = load_settings(where.home, where.conversations)
    known = client_folders()
    return TranscriptWatch(
        folders or [known.claude / "projects", known.codex / "sessions"],
        memory.import_,
        clock=lambda: datetime.now(UTC),
        stamps=settings.home / "index" / f"watched-{where.namespace}.json",
        idle=timedelta(minutes=idle),
    )


def _tell(looked: WatchReport, as_json: bool, *, always: bool) -> None:
    if not (always or looked.files or looked.ended):
        return
    if as_json:
        emit(looked)
        return
    out = console()
    out.print(
        f"{counted(looked.added, 'turn')} from {counted(looked.files, 'transcript')}"
        + (f", {counted(len(looked.ended), 'session')} ended" if looked.ended else "")
    )
    for problem in looked.problems:
        out.print(shown(f"  {problem.path}: {problem.place}: {problem.reason}", "yellow"))
