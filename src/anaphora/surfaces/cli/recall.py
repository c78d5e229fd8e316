"""`anaphora recall`: one search over everything stored.

Hits come as snippets with the words that matched, dates, and short ids that every command accepts.
"""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.api.memory import Memory
from anaphora.container.feature import search_kinds
from anaphora.surfaces.cli.asking import BUDGET, TOP, ask
from anaphora.surfaces.cli.options import Json, MinConfidence, Timeout, argument, option
from anaphora.surfaces.wire import times_between

WHEN = 'A day, a time, or words, in your time zone: 2026-03-01, "last week".'


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(recall)


def recall(
    context: typer.Context,
    question: Annotated[str, argument(Memory.search, "question")],
    top_k: Annotated[int, option(Memory.search, "top_k", "--top-k", "-k")] = TOP,
    budget: Annotated[int, option(Memory.search, "budget")] = BUDGET,
    kind: Annotated[
        list[str] | None, typer.Option(help=f"Only these kinds: {', '.join(search_kinds())}.")
    ] = None,
    since: Annotated[str | None, option(Memory.search, "since", more=WHEN)] = None,
    until: Annotated[str | None, option(Memory.search, "until", more=WHEN)] = None,
    speaker: Annotated[str | None, option(Memory.search, "speaker")] = None,
    project: Annotated[
        str | None, typer.Option(help="Only this project: a name, folder or repository.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Do not prefer the project of this folder.")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option(help="Only memories with this tag.")] = None,
    min_confidence: MinConfidence = None,
    timeout: Timeout = None,
    full: Annotated[bool, typer.Option("--full", help="Whole texts instead of snippets.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    as_json: Json = False,
) -> None:
    """Search memories, notes, conversations, project files and documents.

    Results from the project of this folder come first. Tool calls of coding agents are found
    with --kind tool_call.
    """
    ask(
        context.obj,
        question,
        everywhere=everywhere,
        full=full,
        why=why,
        as_json=as_json,
        top_k=top_k,
        budget=budget,
        kinds=kind or None,
        **times_between({"since": since, "until": until}),
        speaker=speaker,
        project=project,
        tags=tag or (),
        min_confidence=min_confidence,
        timeout=timeout,
    )
