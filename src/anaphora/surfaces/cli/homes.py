"""`anaphora export`, `import`, `backup`, `restore`, `reindex`, `stats`, `doctor`: a whole home."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.settings import client_folders, load_settings
from anaphora.surfaces.cli.offers import choose_offers, find_backups
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import (
    PARTS,
    console,
    emit,
    present,
    styled,
    table,
)
from anaphora.surfaces.cli.progress import AGAIN, UNWRITTEN, long_work
from anaphora.surfaces.cli.where import open_memory, require_whole_home, typed_path
from anaphora.surfaces.wire import counted
from anaphora.values.conversations import FINISH_VECTORS

if TYPE_CHECKING:
    from anaphora.ops import Backup, Exported


NewFile = Annotated[
    Path, typer.Argument(parser=typed_path, help="The file to write; it must not exist.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (export, backup, restore, reindex):
        app.command()(command)


def register_checks(app: typer.Typer) -> None:
    """Add the commands that inspect a home and change nothing."""
    from anaphora.surfaces.cli.doctor import doctor

    for command in (stats, doctor):
        app.command()(command)


def export(
    context: typer.Context,
    path: NewFile,
    masked: Annotated[
        bool, typer.Option("--masked", help="Mask secrets in turns, to give it to another person.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write this namespace as JSON Lines: threads, notes, memories with their history."""
    with (
        open_memory(context) as memory,
        long_work("Exporting", kept=UNWRITTEN, quiet=as_json) as progress,
    ):
        report = memory.export(path, masked=masked, progress=progress)
    parts = [_contents(report) + (f" and {report.past:,} of the past" if report.past else "")]
    parts += [
        counted(number, kind)
        for number, kind in ((report.notes, "note"), (report.documents, "document"))
        if number
    ]
    present(report, f"{', '.join(parts)} in {report.path}", as_json=as_json)


def backup(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            parser=typed_path,
            help="The file to write; it must not exist (default: one named by the day, in your "
            "own folder).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Back up the whole home to one file, even while other programs write."""
    require_whole_home(context, "backup")
    if path is None:
        # The first name with today's date that does not exist yet.
        day = f"{datetime.now(UTC).astimezone():%Y-%m-%d}"
        names = (
            f"anaphora-{day}{f'-{number}' if number > 1 else ''}.backup" for number in count(1)
        )
        paths = (client_folders().user / name for name in names)
        path = next(unused_path for unused_path in paths if not unused_path.exists())
    with (
        open_memory(context) as memory,
        long_work("Backing up", kept=UNWRITTEN, quiet=as_json) as progress,
    ):
        report = memory.backup(path, progress=progress)
    if as_json:
        emit(report)
        return
    terminal = console()
    terminal.print(styled(f"{_contents(report)} in {report.path}"))
    if report.needs_key:
        terminal.print(
            Text(f"this backup is sealed: it needs the exported key {report.needs_key}", "yellow")
        )


def restore(
    context: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            parser=typed_path,
            help="The backup (default: asks which of those in your own folder and the download "
            "folder).",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Restore a backup into a home that is new or empty: --home, or the user's own.

    With ANAPHORA_DATABASE a backup of a PostgreSQL database goes into that one, also empty.
    """
    home_options = require_whole_home(context, "restore", begins=True)
    path = path or choose_offers(find_backups(), "restore")[0]
    home = home_options.home or load_settings(None).home
    with long_work("Restoring", kept=UNWRITTEN, quiet=as_json) as progress:
        report = Memory.restore(
            path, home, conversations_dir=home_options.conversations, progress=progress
        )
    on_server = load_settings(home).database is not None
    database = " and the database of ANAPHORA_DATABASE" if on_server else ""
    present(report, f"{_contents(report)} in {home}{database}", as_json=as_json)


def _contents(done: Backup | Exported) -> str:
    threads, memories = done.threads, done.memories
    return f"{counted(threads, 'conversation')}, {counted(memories, 'memory', 'memories')}"


def reindex(
    context: typer.Context,
    embedder: Annotated[
        str | None,
        typer.Option(help="Move to another one: minilm, ./a/folder, openai:MODEL or ollama:MODEL."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute missing vectors. Interrupted, it goes on where it stopped."""
    stored_note = f"Vectors computed so far are stored. {AGAIN}"
    with (
        open_memory(context, warm=embedder is None, embedder=embedder) as memory,
        long_work("Indexing", kept=stored_note, quiet=as_json) as progress,
    ):
        report = memory.reindex(embedder, progress=progress)
    message = (
        f"{counted(report.turns, 'turn')} and {counted(report.memories, 'memory', 'memories')} "
        f"embedded by {report.embedder}" + (f", {report.left} left" if report.left else "")
    )
    present(report, message, as_json=as_json)


def stats(context: typer.Context, as_json: Json = False) -> None:
    """Show what this namespace contains, and its size on disk."""
    with open_memory(context) as memory:
        stats = memory.stats()
    rows: list[tuple[str, object]] = [
        ("home", stats.home),
        ("namespace", stats.namespace),
        ("conversations", f"{stats.conversations:,}"),
        ("turns", f"{stats.turns:,}"),
        ("turns indexed", f"{stats.indexed:,}"),
        ("vectors", f"{stats.vectors:,}"),
        ("vectors to come", _to_come(stats.pending)),
        ("statements to compare", _to_come(stats.links_due)),
        ("forgettings to clean up after", _to_come(stats.cleaning_due)),
        ("memories", f"{stats.memories:,}"),
        ("projects", f"{stats.projects:,}"),
        ("files of projects", f"{stats.files:,}"),
        ("sections", f"{stats.sections:,}"),
        ("sections without a vector", _to_come(stats.sections_pending)),
        ("notes and diary", f"{stats.notes:,}"),
        ("documents", f"{stats.documents:,}"),
        ("open gaps", f"{stats.gaps:,}"),
        ("jobs waiting", f"{stats.jobs:,}"),
        ("traces", f"{stats.traces:,}"),
        ("embedder", stats.embedder),
        *[
            (f"disk: {PARTS.get(part, part)}", f"{size / 1e6:,.2f} MB")
            for part, size in stats.bytes.items()
        ],
    ]
    present(stats, table("", ("", ""), rows), as_json=as_json)


def _to_come(count: int) -> str:
    return f"{count:,}; {FINISH_VECTORS}" if count else "0"
