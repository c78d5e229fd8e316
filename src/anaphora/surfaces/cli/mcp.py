"""`anaphora mcp`: the server for coding agents."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.surfaces.cli.where import Where
from anaphora.surfaces.mcp_server.short_road import served


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(mcp)


def mcp(
    context: typer.Context,
    tools: Annotated[str, typer.Option(help="default, or all of them.")] = "default",
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve HTTP here instead of standard input."),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="With --http: every user and program of this machine may read and change all.",
        ),
    ] = False,
) -> None:
    """Serve coding agents by the Model Context Protocol, on standard input and output."""
    where: Where = context.obj
    served(where.home, where.namespace, where.conversations, tools, http, open_to_all=no_token)
