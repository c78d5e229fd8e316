"""The commands of `anaphora`, gathered, and the options that all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anaphora import __version__
from anaphora.surfaces.cli import (
    audit,
    conversation,
    core,
    deep,
    documents,
    homes,
    keys,
    memories,
    mirror,
    project,
    recall,
    serve,
    setup,
    sync,
)
from anaphora.surfaces.cli.where import Where, place

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Memory and recall for AI agents, on your own machine.",
)
app.add_typer(conversation.app, name="conversation")
app.add_typer(documents.app, name="document")
recall.register(app)
memories.register(app)
app.add_typer(memories.app, name="memory")
core.register(app)
audit.register(app)
deep.register(app)
homes.register(app)
keys.register(app)
setup.register(app)
mirror.register(app)
sync.register(app)
app.command()(serve.mcp)
project.register(app)
serve.register(app)
app.command("stats")(homes.stats)
app.command("doctor")(homes.doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"anaphora {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            parser=place,
            metavar="PATH",
            help="The home of the memory (ANAPHORA_HOME; otherwise the user's data folder).",
        ),
    ] = None,
    namespace: Annotated[str, typer.Option(help="The namespace to work in.")] = "default",
    conversations_dir: Annotated[
        Path | None,
        typer.Option(
            parser=place,
            metavar="PATH",
            help="Thread files elsewhere (ANAPHORA_CONVERSATIONS_DIR).",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Memory and recall for AI agents, on your own machine."""
    context.obj = Where(home, namespace, conversations_dir)
