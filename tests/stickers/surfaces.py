"""The command, the route and the tool of stickers."""

from __future__ import annotations

from typing import Any

import typer

from anaphora import Memory
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.mcp_server.schemas import enveloped_rows, text
from anaphora.surfaces.mcp_server.tool import Answer, Arguments, CallContext, Tool
from anaphora.surfaces.rest.routing import LaneRouter

from .services import StickerServices

router = LaneRouter("stickers")
app = typer.Typer(no_args_is_help=True, help="Stickers: add, list.")


def stickers_of(memory: Memory) -> StickerServices:
    """The stickers of a memory."""
    return memory._services().feature(StickerServices)


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="sticker")


@app.command()
def add(context: typer.Context, text: str) -> None:
    """Keep a sticker."""
    with open_memory(context, begins=True) as memory:
        typer.echo(stickers_of(memory).add(text))


@app.command("list")
def list_(context: typer.Context) -> None:
    """List the stickers."""
    with open_memory(context) as memory:
        for row in stickers_of(memory).rows():
            typer.echo(row["text"])


@router.answers("GET /stickers", "List stickers", list[str])
def stickers(memory: Memory) -> Any:
    """The oldest first."""
    return [row["text"] for row in stickers_of(memory).rows()]


def list_stickers(memory: Memory, arguments: Arguments, context: CallContext) -> Answer:
    """The stickers that contain a word."""
    texts = [str(row["text"]) for row in stickers_of(memory).rows()]
    return Answer([{"text": one} for one in texts if arguments["word"] in one], None)


TOOLS = (
    Tool(
        "list_stickers",
        list_stickers,
        900,
        "List stickers",
        "Stickers that contain a word.",
        {"word": text("The word.")},
        enveloped_rows({"text": {"type": "string"}}),
        required=("word",),
    ),
)
