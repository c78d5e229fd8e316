"""`anaphora recall`: one question to everything that is kept.

Hits come as snippets with the words that matched, dates, and short ids that every command takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.text import Text

from anaphora.core.display import one_line, visible
from anaphora.core.short_ids import short_id, short_place, short_turn
from anaphora.surfaces.cli.output import (
    Json,
    MinConfidence,
    console,
    emit,
    show_factors,
    show_notes,
    show_text,
    shown,
)
from anaphora.surfaces.cli.where import note_missing, opened
from anaphora.surfaces.meanings import QUERY, TOKENS, meaning
from anaphora.surfaces.wire import time_of
from anaphora.values.conversations import Recall
from anaphora.values.search import DEFAULT_KINDS, KINDS, SearchHit, SearchKind

WHEN = 'A day, a time, or words: 2026-03-01, "last week".'
_NEAREST = 2


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(recall)


def recall(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help=QUERY)],
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help=meaning("limit"))] = 8,
    budget: Annotated[int, typer.Option(min=0, help=TOKENS)] = 4000,
    kind: Annotated[
        list[str] | None, typer.Option(help=f"Only these kinds: {', '.join(KINDS)}.")
    ] = None,
    since: Annotated[str | None, typer.Option(help=f"{meaning('since')} {WHEN}")] = None,
    until: Annotated[str | None, typer.Option(help=f"{meaning('until')} {WHEN}")] = None,
    speaker: Annotated[str | None, typer.Option(help=meaning("speaker", "TurnQuestion"))] = None,
    project: Annotated[
        str | None, typer.Option(help="Only this project: a name, folder or repository.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Do not prefer the project of this folder.")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option(help="Only memories with this tag.")] = None,
    min_confidence: MinConfidence = None,
    full: Annotated[bool, typer.Option("--full", help="Whole texts instead of snippets.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Show the parts of each score.")] = False,
    as_json: Json = False,
) -> None:
    """Recall what bears on a question: memories, notes, turns, project files, documents.

    What was said in the project of this folder comes first. Tool calls of coding agents are found
    with --kind tool_call.
    """
    with opened(context, warm=True) as memory:
        found = memory.search(
            question,
            top_k=top_k,
            budget=budget,
            kinds=cast(Sequence[SearchKind], kind) if kind else DEFAULT_KINDS,
            since=time_of("since", since),
            until=time_of("until", until),
            speaker=speaker,
            project=project,
            tags=tag or (),
            directory=None if everywhere else Path.cwd(),
            min_confidence=min_confidence,
        )
        if not found.hits:
            note_missing(memory)
    if as_json:
        emit(found)
        return
    out = console()
    for rank, hit in enumerate(found.hits, 1):
        show_hit(out, f"{rank}  ", hit, full=full, why=why)
    if not found.hits:
        _show_silence(out, found)
    show_notes(found)


def show_hit(out: Console, mark: str, hit: SearchHit, *, full: bool, why: bool) -> None:
    """One hit: what it is, when, by whom, its short id, and the words that matched."""
    head = Text(mark, style="dim").append(_label(hit), style="bold")
    when = f"  {hit.ts:%Y-%m-%d %H:%M}" if hit.ts is not None and hit.ts.year > 1 else ""
    head.append(f"{when}  {_id(hit)}", style="dim").append(f"  {hit.score:.2f}", style="green")
    if not hit.current:
        head.append("  older", style="yellow")
    out.print(head)
    if full or not hit.snippet:
        show_text(out, hit.text or hit.title)
    else:
        out.print(_highlighted(hit))
    for line in hit.versions:
        out.print(shown(f"   {line}", "dim"))
    if why:
        show_factors(out, hit.factors)


def _label(hit: SearchHit) -> str:
    if hit.kind == "turn":
        return one_line(hit.speaker)
    if hit.kind == "file":
        return f"file {one_line(hit.project)}".strip()
    told = {"tool_call": "tool call"}.get(hit.kind, hit.kind)
    return f"{told} {one_line(hit.title)}".strip()


def _id(hit: SearchHit) -> str:
    if hit.kind in {"turn", "tool_call"} and hit.index is not None:
        return one_line(short_turn(hit.conversation_id, hit.index), None)
    if hit.kind == "document":
        return one_line(short_place(hit.id), None)
    return one_line(hit.id if hit.kind == "file" else short_id(hit.id), None)


def _highlighted(hit: SearchHit) -> Text:
    """The snippet in a line, the words that matched set off."""
    line, at = Text("   "), 0
    for start, end in hit.matches:
        line.append(visible(hit.snippet[at:start])).append(
            visible(hit.snippet[start:end]), style="bold yellow"
        )
        at = end
    return line.append(visible(hit.snippet[at:]))


def _show_silence(out: Console, found: Recall[SearchHit]) -> None:
    """That nothing fits, and what came nearest."""
    sure = "" if found.confidence is None else f" (probability {found.confidence:.2f})"
    if not found.nearest:
        out.print("nothing fits")
        return
    out.print(Text(f"nothing fits{sure}; nearest was:"))
    for hit in found.nearest[:_NEAREST]:
        show_hit(out, "   ", hit, full=False, why=False)
    out.print(Text("--min-confidence 0 shows them all", style="dim"))
