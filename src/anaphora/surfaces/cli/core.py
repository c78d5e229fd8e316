"""`anaphora core`: what every session starts with, and in which order."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.api.memory import Memory
from anaphora.core.short_ids import short_id
from anaphora.core.shown_times import shown_day
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, give, show_notices, show_text, shown
from anaphora.surfaces.cli.where import opened
from anaphora.surfaces.meanings import TOKENS, meaning
from anaphora.surfaces.wire import counted
from anaphora.values.memories import CoreBlock, CoreEntry
from anaphora.values.projects import LEAST_BUDGET

app = typer.Typer(
    no_args_is_help=True, help="The core block: what every session starts with, and in which order."
)
Which = Annotated[
    str, typer.Argument(metavar="ID", help="The memory: its id, its last characters, or its path.")
]
_AT = meaning("position")


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="core")


@app.command()
def show(
    context: typer.Context,
    budget: Annotated[int | None, typer.Option(min=LEAST_BUDGET, help=TOKENS)] = None,
    block: Annotated[bool, typer.Option("--block", help="The text as an agent gets it.")] = False,
    as_json: Json = False,
) -> None:
    """Show the block: what is pinned, in order, then rules and preferences; what did not fit."""
    with opened(context) as memory:
        found = memory.core_block(budget=budget)
    if block and not as_json:
        from anaphora.recall.context.core_block import render_core

        console().print(shown(render_core(found)))
        return
    give(found, _show_block, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What every session should know, in a sentence.")],
    path: Annotated[str | None, typer.Option(help=meaning("path"))] = None,
    at: Annotated[int | None, typer.Option("--at", min=1, help=_AT)] = None,
    as_json: Json = False,
) -> None:
    """Remember something and pin it."""
    with opened(context, warm=True, begins=True) as memory:
        done = memory.remember(text, path=path)
        pinned = memory.pin(done.id, at)
    show_notices(done.notices)
    give({"id": pinned}, f"{done.action} and pinned {short_id(pinned)}", as_json=as_json)


@app.command()
def pin(
    context: typer.Context,
    id_: Which,
    at: Annotated[int | None, typer.Option("--at", min=1, help=_AT)] = None,
    as_json: Json = False,
) -> None:
    """Pin a memory: it is in every session, and so is whatever takes its place."""
    with opened(context) as memory:
        pinned = memory.pin(_memory_of(memory, id_), at)
    give({"id": pinned}, f"pinned {short_id(pinned)}", as_json=as_json)


@app.command()
def move(
    context: typer.Context,
    id_: Which,
    position: Annotated[int, typer.Argument(min=1, help="Its place among the pinned, from 1.")],
    as_json: Json = False,
) -> None:
    """Move a pinned memory to another place."""
    with opened(context) as memory:
        pinned = memory.pin(_memory_of(memory, id_), position)
    give({"id": pinned}, f"moved {short_id(pinned)}", as_json=as_json)


@app.command()
def unpin(context: typer.Context, id_: Which, as_json: Json = False) -> None:
    """Take a memory out of the block, pinned or not. It stays remembered."""
    with opened(context) as memory:
        gone = memory.unpin(_memory_of(memory, id_))
    give({"id": gone}, f"not in the core block: {short_id(gone)}", as_json=as_json)


def _memory_of(memory: Memory, given: str) -> str:
    """The id of a memory that is given by its id, its last characters, or its path."""
    held = [one for one in memory.history(given) if one.valid_to is None and not one.forgotten]
    return held[-1].id if held else memory.resolve_id(given, "memory")


def _show_block(found: CoreBlock) -> None:
    out = console()
    for one in found.entries:
        _show_entry(one)
    if not found.entries and not found.left_out:
        out.print('nothing yet: anaphora core add "I prefer short answers."')
        return
    out.print(shown(f"{found.tokens} of {counted(found.budget, 'token')}", "dim"))
    if found.left_out:
        out.print(shown(f"did not fit ({len(found.left_out)}):", "yellow"))
    for one in found.left_out:
        _show_entry(one)


def _show_entry(one: CoreEntry) -> None:
    out = console()
    place = "-" if one.position is None else str(one.position)
    facts = [place, short_id(one.id), one.kind, shown_day(one.since), one.path or ""]
    out.print(shown(" ".join(fact for fact in facts if fact)))
    show_text(out, one.text)
    if one.previous is not None:
        out.print(shown(f"   before: {one.previous.text}", "dim"))
    if one.sources:
        out.print(shown(f"   from {', '.join(one.sources)}", "dim"))
    if one.conversation_id is not None:
        turn = "" if one.turn_index is None else f"#{one.turn_index}"
        out.print(shown(f"   said in {one.conversation_id}{turn}", "dim"))
