"""`anaphora import`, `conversation import` and `conversation watch`."""

from __future__ import annotations

import re
import time
from collections import Counter
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
from anaphora.surfaces.cli.offers import choose_offers, find_offers
from anaphora.surfaces.cli.options import Json, option
from anaphora.surfaces.cli.output import (
    EXIT_INPUT,
    EXIT_PARTLY,
    console,
    present,
    show_error,
    show_notices,
    styled,
)
from anaphora.surfaces.cli.progress import long_work
from anaphora.surfaces.cli.vectors import EMBED, finish_vectors
from anaphora.surfaces.cli.where import (
    Where,
    open_memory,
    typed_path,
)
from anaphora.surfaces.wire import counted
from anaphora.text.display import one_line
from anaphora.values.conversations import ImportReport

# Repeated here because importing the importers would slow down every command.
KNOWN_FORMATS = (
    *("chatgpt", "claude_ai", "deepseek", "claude_code", "codex", "gemini_cli", "cursor"),
    *("vscode_copilot", "aider", "gemini_takeout", "telegram", "mem0", "claude_mem"),
    *("mcp_memory", "letta", "zep", "basic_memory", "sharegpt", "neo", "jsonl", "markdown"),
    "anaphora",
)


# How many vanished sources are listed by name.
_MOST_GONE = 5
# How many kinds of what was left out, or could not be read, are told.
_MOST_KINDS = 5
_OF_FILES = re.compile(r"\b(?:files?|folder|database)\b")
_KEPT = (
    "Everything read so far is stored. Run the same import again to go on where it stopped; "
    "`anaphora reindex` computes the vectors."
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
            help="Exports, transcripts or folders of them (default: asks which of those found in "
            "the download folder and in the folders of coding agents).",
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
    """Import chats, sessions of coding agents, other programs' memories, and folders of notes.

    They are searchable by keyword at once. Then the vectors are computed; Ctrl-C leaves them to
    later questions.
    """
    chosen_paths = paths or choose_offers(find_offers())
    with open_memory(context, warm=embed, begins=True) as memory:
        try:
            with long_work("Importing", kept=_KEPT, quiet=as_json) as progress:
                report = memory.import_(
                    chosen_paths, format=form, again=again, embed=False, progress=progress
                )
        except UnknownFormat as error:
            from anaphora.features.importing.formats import RECOGNISED

            reason, formats, _ = error.reason.partition(RECOGNISED)
            if not formats:
                raise
            reason = reason.rstrip(".\n")
            show_error(UnknownFormat(error.what, None, f"{reason} (given {error.value})"))
            console(stderr=True).print(Text(RECOGNISED))
            raise typer.Exit(EXIT_INPUT) from None
        present(report, _show_import, as_json=as_json)
        if embed:
            finish_vectors(memory, quiet=as_json)
    from anaphora.features.importing.formats.passing import EMPTY

    # The formats were recognised, but the files were empty.
    has_content = report.conversations or _has_memories(report)
    is_blank = not has_content and any(kind.startswith(EMPTY) for kind in report.left_out)
    if report.problems or is_blank:
        raise typer.Exit(EXIT_PARTLY)


def _show_import(report: ImportReport) -> None:
    terminal = console()
    if _has_memories(report):
        terminal.print(
            f"{counted(report.memories_added, 'memory', 'memories')} added, "
            f"{report.memories_known} known already"
            + (f", {report.memories_changed} changed" if report.memories_changed else "")
            + (f", {report.memories_ended} ended" if report.memories_ended else "")
            + (
                f", {report.memories_forgotten} forgotten here and left out"
                if report.memories_forgotten
                else ""
            )
        )
    if report.notes_added or report.notes_known:
        terminal.print(
            f"{counted(report.notes_added, 'note')} added, {report.notes_known} known already"
        )
    if report.documents_added or report.documents_known:
        terminal.print(
            f"{counted(report.documents_added, 'document')} added, "
            f"{report.documents_known} known already"
        )
    if report.gaps_added:
        terminal.print(f"{counted(report.gaps_added, 'open question')} added")
    if report.conversations or not _has_memories(report):
        terminal.print(
            f"{counted(report.conversations, 'conversation')}: "
            f"{counted(report.added, 'turn')} added, {report.known} known already"
            + (f", {counted(report.branches, 'branch', 'branches')}" if report.branches else "")
            + (f", {report.forgotten} forgotten here and left out" if report.forgotten else "")
            + (f", {counted(report.tool_calls, 'tool call')} noted" if report.tool_calls else "")
        )
    _show_left_out(report)
    _show_problems(report)
    if report.redacted:
        terminal.print(f"  taken out: {', '.join(report.redacted)}")
    if report.gone:
        shown_names = ", ".join(one_line(name) for name in report.gone[:_MOST_GONE])
        hidden_count = len(report.gone) - _MOST_GONE
        terminal.print(
            Text(
                f"  deleted at the source, kept here: {shown_names}"
                + (f" and {hidden_count} more" if hidden_count > 0 else "")
                + " (anaphora history PATH shows what they said)"
            )
        )
    show_notices(report.notices)


def _show_left_out(report: ImportReport) -> None:
    """What of files was left out on one line, whole files on another: the most frequent first."""
    counts = Counter(report.left_out)
    files = Counter({kind: count for kind, count in counts.items() if _OF_FILES.search(kind)})
    for kinds in (counts - files, files):
        told_kinds = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_MOST_KINDS))
        hidden_count = kinds.total() - sum(c for _, c in kinds.most_common(_MOST_KINDS))
        more = f", {hidden_count} of other kinds (--json lists them)" if hidden_count else ""
        if told_kinds:
            console().print(Text(f"  left out: {told_kinds}{more}"))


def _show_problems(report: ImportReport) -> None:
    """List the first problem of each kind, and the formats if none was recognised."""
    from anaphora.features.importing.formats import RECOGNISED
    from anaphora.ingest.problems import UNKNOWN, UNKNOWN_ALL

    terminal = console()
    alike = Counter(problem.reason for problem in report.problems)
    firsts = {problem.reason: problem for problem in reversed(report.problems)}
    shown_reasons = [*alike][:_MOST_KINDS]
    for reason in shown_reasons:
        problem, more = firsts[reason], alike[reason] - 1
        also = f" (and {more:,} more like it)" if more else ""
        line = f"  {problem.path}: {problem.place}: {reason}{also}"
        terminal.print(styled(line, "yellow"))
    hidden_count = len(report.problems) - sum(alike[reason] for reason in shown_reasons)
    if hidden_count:
        terminal.print(
            styled(f"  {hidden_count:,} more could not be read (--json lists them)", "yellow")
        )
    is_unknown = any(
        problem.reason.startswith((UNKNOWN, UNKNOWN_ALL)) for problem in report.problems
    )
    if is_unknown and not (report.conversations or report.left_out or _has_memories(report)):
        terminal.print(Text(RECOGNISED))


def _has_memories(report: ImportReport) -> bool:
    return any(
        (
            report.memories_added,
            report.memories_known,
            report.memories_changed,
            report.memories_ended,
            report.memories_forgotten,
        )
    )
