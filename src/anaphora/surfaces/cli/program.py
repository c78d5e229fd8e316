"""The commands of `anaphora`, and the options that all of them share.

A process runs one command: `program` loads only the part that contains it, since loading all of
them takes longer than a question does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import anaphora.registry  # noqa: F401 - registers all features
from anaphora import __version__
from anaphora.container.feature import Commands, load, registered
from anaphora.surfaces.cli.grammar import CONVERSATIONS, HOME, NAMESPACE
from anaphora.surfaces.cli.options import typer_option
from anaphora.surfaces.cli.texts import let_texts_begin_with_dashes
from anaphora.surfaces.cli.where import Where, typed_path

_CLI: Final = "anaphora.surfaces.cli"
_KERNEL: Final = (
    Commands(f"{_CLI}.conversation:register", ("conversation",), 20),
    Commands(f"{_CLI}.recall:register", ("recall",), 40),
    Commands(
        f"{_CLI}.memories:register",
        (
            "remember", "get", "update", "forget", "contradictions", "settle", "reopen", "history",
            "list", "undo-forget", "memory", "redact-memories",
        ),
        50,
    ),
    Commands(f"{_CLI}.homes:register", ("export", "backup", "restore", "reindex"), 90),
    Commands(f"{_CLI}.keys:register", ("encrypt", "decrypt", "key"), 100),
    Commands(f"{_CLI}.namespace:register", ("namespace",), 130),
    Commands(f"{_CLI}.mcp:register", ("mcp",), 150),
    Commands(f"{_CLI}.homes:register_checks", ("stats", "doctor"), 180),
)  # fmt: skip
"""The commands of the kernel; features have more."""


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
    of_features = (group for feature in registered() for group in feature.commands)
    groups = sorted((*_KERNEL, *of_features), key=lambda group: group.order)
    for group in [group for group in groups if command in group.names] or groups:
        register: Callable[[typer.Typer], Any] = load(group.register)
        register(app)
    let_texts_begin_with_dashes(app)
    return app


def _version(show: bool) -> None:
    if show:
        typer.echo(f"anaphora {__version__}")
        raise typer.Exit


def options(
    context: typer.Context,
    home: Annotated[Path | None, typer_option(HOME, parser=typed_path)] = None,
    namespace: Annotated[str, typer_option(NAMESPACE)] = NAMESPACE.default,
    conversations: Annotated[Path | None, typer_option(CONVERSATIONS, parser=typed_path)] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The options of every command: which memory it works on."""
    context.obj = Where(home, namespace, conversations)
