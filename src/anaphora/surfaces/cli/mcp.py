"""`anaphora mcp`: memory for MCP clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anaphora.surfaces.cli.grammar import Option

if TYPE_CHECKING:
    import typer

    from anaphora.surfaces.cli.where import Where

OPTIONS: Final = (
    Option("tools", "default, or all of them.", default="default"),
    Option("http", "Serve HTTP here instead of standard input.", metavar="HOST:PORT"),
    Option(
        "no_token",
        "With --http: every user and program of this machine may read and change all.",
        bool,
        default=False,
    ),
    Option(
        "oauth",
        "With --http: let clients elsewhere connect by OAuth; URL is the address at which "
        "they reach this server, as https://memory.example.org.",
        metavar="URL",
    ),
)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    from anaphora.surfaces.cli.options import add_command

    add_command(app, mcp, OPTIONS)


def mcp(where: Where, *, tools: str, http: str | None, no_token: bool, oauth: str | None) -> None:
    """Run the MCP server for coding agents, on standard input and output."""
    from anaphora.surfaces.mcp_server import serve

    serve(
        where.home,
        where.namespace,
        where.conversations,
        tools=tools,
        http=http,
        open_to_all=no_token,
        oauth=oauth,
    )
