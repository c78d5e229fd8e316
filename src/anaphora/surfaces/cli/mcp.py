"""`anaphora mcp`: memory for MCP clients."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.surfaces.cli.where import Where


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
    oauth: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="With --http: let clients elsewhere connect by OAuth; URL is the address at which "
            "they reach this server, as https://memory.example.org.",
        ),
    ] = None,
) -> None:
    """Run the MCP server for coding agents, on standard input and output."""
    from anaphora.surfaces import mcp_server

    at: Where = context.obj
    mcp_server.serve(
        at.home,
        at.namespace,
        at.conversations,
        tools=tools,
        http=http,
        open_to_all=no_token,
        oauth=oauth,
    )
