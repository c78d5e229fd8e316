"""`anaphora import`, `conversation import` and `conversation watch`."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.errors import UnknownFormat
from anaphora.ingest.transcripts import IDLE, TranscriptWatch, WatchReport
from anaphora.settings import client_folders, load_settings
from anaphora.store.home.sealing import folder_name
from anaphora.surfaces.cli.conversation import app as conversation
from anaphora.surfaces.cli.imports import run_import
from anaphora.surfaces.cli.offers import choose_offers, find_offers
from anaphora.surfaces.cli.options import Json, option
from anaphora.surfaces.cli.output import (
    EXIT_INPUT,
    console,
    present,
    show_error,
    styled,
)
from anaphora.surfaces.cli.vectors import EMBED
from anaphora.surfaces.cli.where import (
    Where,
    open_memory,
    typed_path,
)
from anaphora.surfaces.wire import counted

# Repeated here because importing the importers would slow down every command.
KNOWN_FORMATS = (
    *("chatgpt", "claude_ai", "deepseek", "claude_code", "codex", "gemini_cli", "cursor"),
    *("vscode_copilot", "aider", "gemini_takeout", "telegram", "mem0", "claude_mem"),
    *("mcp_memory", "letta", "zep", "basic_memory", "sharegpt", "neo", "jsonl", "markdown"),
    "anaphora",
)


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.command("import")(import_)


def register_conversation(program: typer.Typer) -> None:
    """Add `watch` and `import` to the commands of conversations."""
    conversation.command()(watch)
    conversation.command("import")(import_)


def watch(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=typed_path, help="Transcript folders (default: those of Claude Code and Codex)."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Check once and exit.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks.")] = 2.0,
    idle: Annotated[
        float, typer.Option(min=0.0, help="Minutes after which a quiet session has ended.")
    ] = IDLE.total_seconds() / 60,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per check.")] = False,
) -> None:
    """Import the transcripts of coding agents as they grow.

    Runs until it is interrupted. Only files that changed are read; a session that was quiet for
    --idle minutes counts as ended, which queues what a session's end brings.
    """
    home_options: Where = context.obj
    settings = load_settings(home_options.home, home_options.conversations)
    clients = client_folders()
    with open_memory(context, warm=not once, begins=True) as memory:
        following = TranscriptWatch(
            folders or [clients.claude / "projects", clients.codex / "sessions"],
            memory.import_,
            clock=lambda: datetime.now(UTC),
            stamps=settings.home / "index" / f"watched-{folder_name(home_options.namespace)}.json",
            idle=timedelta(minutes=idle),
        )
        try:
            while True:
                report = following.look()
                for conversation_id in report.ended:
                    memory.end_session(conversation_id)
                if once or report.files or report.ended:
                    present(report, _show_watched, as_json=as_json)
                if once:
                    return
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _show_watched(looked: WatchReport) -> None:
    terminal = console()
    terminal.print(
        f"{counted(looked.added, 'turn')} from {counted(looked.files, 'transcript')}"
        + (f", {counted(len(looked.ended), 'session')} ended" if looked.ended else "")
    )
    for problem in looked.problems:
        terminal.print(styled(f"  {problem.path}: {problem.place}: {problem.reason}", "yellow"))


def import_(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            parser=typed_path,
            help="Files of any kind, or folders of them (default: asks which of those found in the "
            "download folder and in the folders of coding agents).",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"Do not guess the format: {', '.join(KNOWN_FORMATS)}.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[bool, option(Memory.import_, "again")] = False,
    embed: Annotated[bool, typer.Option(help=EMBED)] = True,
    as_json: Json = False,
) -> None:
    """Import files: chats, other programs' memories, folders of notes, and documents.

    What a file is, is recognised: exports and transcripts of chats become conversations, memories
    and notes become memories, and PDF, Word, HTML, mail, calendar, Markdown, text, CSV and other
    JSON files become documents. What has no text to be read is named. All is searchable by keyword
    at once. Then the vectors are computed; Ctrl-C leaves them to later questions.
    """
    chosen_paths = paths or choose_offers(find_offers())
    try:
        run_import(context, chosen_paths, form=form, again=again, embed=embed, as_json=as_json)
    except UnknownFormat as error:
        from anaphora.features.importing.formats import RECOGNISED

        if error.what == "format":
            raise
        show_error(error)
        console(stderr=True).print(Text(RECOGNISED))
        raise typer.Exit(EXIT_INPUT) from None
