"""The commands of `anaphora`, and the options that all of them share.

A process runs one command: `program` loads only the part that contains it, since loading all of
them takes longer than a question does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from anaphora import __version__
from anaphora.surfaces.cli.texts import let_texts_begin_with_dashes
from anaphora.surfaces.cli.where import Where, typed_path

_PARTS: Final = (
    ("start.register", ("start",)),
    ("conversation.register", ("conversation",)),
    ("documents.register", ("document",)),
    ("recall.register", ("recall",)),
    (
        "memories.register",
        (
            "remember", "get", "update", "forget", "contradictions", "settle", "reopen", "history",
            "list", "undo-forget", "memory", "redact-memories",
        ),
    ),
    ("core.register", ("core",)),
    ("audit.register", ("audit",)),
    ("deep.register", ("deep", "gaps", "dream", "extract")),
    ("homes.register", ("export", "backup", "restore", "reindex", "import")),
    ("keys.register", ("encrypt", "decrypt", "key")),
    ("setup.register", ("setup", "hook")),
    ("mirror.register", ("mirror",)),
    ("namespace.register", ("namespace",)),
    ("sync.register", ("sync",)),
    ("serve.register_mcp", ("mcp",)),
    ("project.register", ("project", "observe", "notes", "diary")),
    ("serve.register", ("serve", "token")),
    ("homes.register_checks", ("stats", "doctor")),
)  # fmt: skip
"""What registers commands, and which ones, in the order in which help shows them."""


_HELP: Final = (
    "Memory and recall for AI agents, on your own machine.\n\n"
    "New here? `anaphora start` opens your memory in the browser and says what to do next."
)


def program(command: str | None = None) -> typer.Typer:
    """The program with the part that contains `command`; with all parts if none does, or None."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help=_HELP,
    )
    app.callback()(options)
    parts = [part for part, commands in _PARTS if command in commands]
    for part in parts or [part for part, _ in _PARTS]:
        module, _, name = part.partition(".")
        register: Callable[[typer.Typer], Any]
        register = getattr(import_module(f"anaphora.surfaces.cli.{module}"), name)
        register(app)
    let_texts_begin_with_dashes(app)
    return app


def _version(show: bool) -> None:
    if show:
        typer.echo(f"anaphora {__version__}")
        raise typer.Exit


def options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            parser=typed_path,
            metavar="PATH",
            help="The home of the memory (ANAPHORA_HOME; otherwise the user's data folder).",
        ),
    ] = None,
    namespace: Annotated[str, typer.Option(help="The namespace to work in.")] = "default",
    conversations_dir: Annotated[
        Path | None,
        typer.Option(
            parser=typed_path,
            metavar="PATH",
            help="Thread files elsewhere (ANAPHORA_CONVERSATIONS_DIR).",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The options of every command: which memory it works on."""
    context.obj = Where(home, namespace, conversations_dir)
