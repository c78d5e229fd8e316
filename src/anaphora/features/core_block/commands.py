"""`anaphora core`: what every session starts with, and in which order."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.api.memory import Memory
from anaphora.calls.operation import operation_of
from anaphora.surfaces.cli.options import Json, option
from anaphora.surfaces.cli.output import console, present, show_notices, show_text, styled
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.wire import counted
from anaphora.text.short_ids import short_id
from anaphora.text.shown_times import shown_day
from anaphora.values.memories import CoreBlock, CoreEntry

app = typer.Typer(
    no_args_is_help=True, help="The core block: what every session starts with, and in which order."
)
Which = Annotated[
    str, typer.Argument(metavar="ID", help="The memory: its id, its last characters, or its path.")
]
_AT = operation_of(Memory.pin).describe("position").meaning


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="core")


@app.command()
def show(
    context: typer.Context,
    budget: Annotated[int | None, option(Memory.core_block, "budget")] = None,
    block: Annotated[bool, typer.Option("--block", help="The text as an agent gets it.")] = False,
    as_json: Json = False,
) -> None:
    """Show the block: pinned memories in order, rules, preferences, and what did not fit."""
    with open_memory(context) as memory:
        core = memory.core_block(budget=budget)
    if block and not as_json:
        from anaphora.features.core_block.recall import render_core

        console().print(styled(render_core(core)))
        return
    present(core, _show_block, as_json=as_json)


@app.command()
def add(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What every session should know, in a sentence.")],
    path: Annotated[str | None, option(Memory.remember, "path")] = None,
    at: Annotated[int | None, typer.Option("--at", min=1, help=_AT)] = None,
    as_json: Json = False,
) -> None:
    """Remember something and pin it."""
    with open_memory(context, warm=True, begins=True) as memory:
        report = memory.remember(text, path=path)
        pinned_id = memory.pin(report.id, at)
    show_notices(report.notices)
    present({"id": pinned_id}, f"{report.action} and pinned {short_id(pinned_id)}", as_json=as_json)


@app.command()
def pin(
    context: typer.Context,
    id_: Which,
    at: Annotated[int | None, typer.Option("--at", min=1, help=_AT)] = None,
    as_json: Json = False,
) -> None:
    """Pin a memory: every session gets it, or the memory that replaces it."""
    with open_memory(context) as memory:
        pinned_id = memory.pin(_find_memory(memory, id_), at)
    present({"id": pinned_id}, f"pinned {short_id(pinned_id)}", as_json=as_json)


@app.command()
def move(
    context: typer.Context,
    id_: Which,
    position: Annotated[int, typer.Argument(min=1, help="Its position among the pinned, from 1.")],
    as_json: Json = False,
) -> None:
    """Move a pinned memory to another position."""
    with open_memory(context) as memory:
        pinned_id = memory.pin(_find_memory(memory, id_), position)
    present({"id": pinned_id}, f"moved {short_id(pinned_id)}", as_json=as_json)


@app.command()
def unpin(context: typer.Context, id_: Which, as_json: Json = False) -> None:
    """Take a memory out of the block, pinned or not. It stays remembered."""
    with open_memory(context) as memory:
        removed_id = memory.unpin(_find_memory(memory, id_))
    present({"id": removed_id}, f"not in the core block: {short_id(removed_id)}", as_json=as_json)


def _find_memory(memory: Memory, name: str) -> str:
    """The id of a memory given by its id, its last characters, or its path."""
    current = [
        version
        for version in memory.history(name)
        if version.valid_to is None and not version.forgotten
    ]
    return current[-1].id if current else memory.resolve_id(name, "memory")


def _show_block(core: CoreBlock) -> None:
    terminal = console()
    for memory in core.entries:
        _show_entry(memory)
    if not core.entries and not core.left_out:
        terminal.print('nothing yet: anaphora core add "I prefer short answers."')
        return
    terminal.print(styled(f"{core.tokens} of {counted(core.budget, 'token')}", "dim"))
    if core.left_out:
        terminal.print(styled(f"did not fit ({len(core.left_out)}):", "yellow"))
    for memory in core.left_out:
        _show_entry(memory)


def _show_entry(memory: CoreEntry) -> None:
    terminal = console()
    position = "-" if memory.position is None else str(memory.position)
    facts = [position, short_id(memory.id), memory.kind, shown_day(memory.since), memory.path or ""]
    terminal.print(styled(" ".join(fact for fact in facts if fact)))
    show_text(terminal, memory.text)
    if memory.previous is not None:
        terminal.print(styled(f"   before: {memory.previous.text}", "dim"))
    if memory.sources:
        terminal.print(styled(f"   from {', '.join(memory.sources)}", "dim"))
    if memory.conversation_id is not None:
        turn = "" if memory.turn_index is None else f"#{memory.turn_index}"
        terminal.print(styled(f"   said in {memory.conversation_id}{turn}", "dim"))
