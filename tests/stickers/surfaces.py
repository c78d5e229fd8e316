"""The command, the route and the tool of stickers."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora import Memory
from anaphora.calls.operation import Http, operation
from anaphora.calls.parameters import name_parameter
from anaphora.container.view import NamespaceView
from anaphora.surfaces.cli.options import option
from anaphora.surfaces.cli.where import open_memory
from anaphora.surfaces.mcp_server.schemas import arguments, enveloped_rows
from anaphora.surfaces.mcp_server.tool import Answer, Arguments, CallContext, Tool
from anaphora.surfaces.rest.routing import LaneRouter

from .services import StickerServices

router = LaneRouter("stickers")
app = typer.Typer(no_args_is_help=True, help="Stickers: add, list.")


def stickers_of(memory: Memory) -> StickerServices:
    """The stickers of a memory."""
    return memory._services().feature(StickerServices)


class StickerCalls(NamespaceView):
    """The call of stickers."""

    @operation(
        "read",
        http=Http("GET /v1/stickers", "List stickers"),
        parameters={"word": name_parameter("The word.")},
    )
    def stickers(self, word: str | None = None, *, limit: int = 50) -> tuple[str, ...]:
        """Stickers that contain a word, the oldest first."""
        rows = self._services().feature(StickerServices).rows()
        return tuple(str(row["text"]) for row in rows if (word or "") in str(row["text"]))[:limit]


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="sticker")


@app.command()
def add(context: typer.Context, text: str) -> None:
    """Keep a sticker."""
    with open_memory(context, begins=True) as memory:
        typer.echo(stickers_of(memory).add(text))


@app.command("list")
def list_(
    context: typer.Context,
    limit: Annotated[int, option(StickerCalls.stickers, "limit")] = 50,
) -> None:
    """List the stickers."""
    with open_memory(context) as memory:
        for text in StickerCalls.stickers(memory, limit=limit):  # type: ignore[arg-type]
            typer.echo(text)


router.offer(StickerCalls, calls={"stickers": StickerCalls.stickers})


def list_stickers(memory: Memory, given: Arguments, context: CallContext) -> Answer:
    """The stickers that contain a word."""
    texts = StickerCalls.stickers(memory, **given)  # type: ignore[arg-type]
    return Answer([{"text": text} for text in texts], None)


TOOLS = (
    Tool(
        "list_stickers",
        list_stickers,
        900,
        "Stickers that contain a word.",
        arguments(StickerCalls.stickers, "word limit", {"limit": {"maximum": 20}}),
        enveloped_rows({"text": {"type": "string"}}),
        required=("word",),
    ),
)
