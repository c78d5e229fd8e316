"""The commands of `anaphora`, and the options that all of them share.

A process runs one command: `program` loads only the part that contains it, since loading all of
them takes longer than a question does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, cast, get_args

import typer
from typer.core import TyperGroup

import anaphora.registry  # noqa: F401 - registers all features
from anaphora import __version__
from anaphora.container.feature import Commands, Section, load, registered
from anaphora.surfaces.cli.grammar import CONVERSATIONS, HOME, NAMESPACE
from anaphora.surfaces.cli.options import typer_option
from anaphora.surfaces.cli.texts import let_texts_begin_with_dashes
from anaphora.surfaces.cli.where import Where, typed_path

_CLI: Final = "anaphora.surfaces.cli"
_KERNEL: Final = (
    Commands(f"{_CLI}.conversation:register", 20, behind={"conversation": "Recall"}),
    Commands(f"{_CLI}.recall:register", 40, {"recall": "Recall"}),
    Commands(
        f"{_CLI}.memories:register",
        50,
        {"remember": "Remember", "get": "Recall", "list": "Recall", "forget": "Remember"},
        {
            "update": "Remember", "undo-forget": "Remember", "contradictions": "Remember",
            "settle": "Remember", "reopen": "Remember", "history": "Recall", "memory": "Recall",
            "redact-memories": "Care",
        },
    ),
    Commands(
        f"{_CLI}.homes:register",
        90,
        {"backup": "Care"},
        {"restore": "Care", "export": "Care", "reindex": "Care"},
    ),
    Commands(
        f"{_CLI}.keys:register", 100, behind={"encrypt": "Care", "decrypt": "Care", "key": "Care"}
    ),
    Commands(f"{_CLI}.namespace:register", 130, behind={"namespace": "Care"}),
    Commands(f"{_CLI}.mcp:register", 150, behind={"mcp": "Agents and server"}),
    Commands(f"{_CLI}.homes:register_checks", 180, {"doctor": "Care"}, {"stats": "Care"}),
)  # fmt: skip
"""The commands of the kernel; features have more."""

_ALL: Final = "--all"
_HELP: Final = (
    "Memory and recall for AI agents, on your own machine.\n\n"
    "New here? `anaphora start` opens your memory in the browser and says what to do next."
)


def _groups() -> list[Commands]:
    of_features = (group for feature in registered() for group in feature.commands)
    return sorted((*_KERNEL, *of_features), key=lambda group: group.order)


class Program(TyperGroup):
    """The program, whose help has the commands in sections: those in front, or with --all all."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note whether the help is to show all; every other word is read as usual."""
        ctx.meta[_ALL] = _ALL in args
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        sections = {name: part for group in _groups() for name, part in group.sections.items()}
        front = {name for group in _groups() for name in group.front}
        order = get_args(Section)
        by_section = sorted(self.commands, key=lambda name: order.index(sections[name]))
        self.commands = {name: self.commands[name] for name in by_section}
        count = sum(not command.hidden for command in self.commands.values())
        for name, command in self.commands.items():
            cast(Any, command).rich_help_panel = sections[name]
            command.hidden |= not (ctx.meta[_ALL] or name in front)
        for param in self.params:
            # The two options of a shell's completion.
            cast(Any, param).hidden |= "completion" in str(param.name) and not ctx.meta[_ALL]
        if not ctx.meta[_ALL]:
            self.epilog = f"`anaphora help all` shows all {count} commands."
        super().format_help(ctx, formatter)


def program(command: str | None = None) -> typer.Typer:
    """The program with the part that contains `command`; with all parts if none does, or None."""
    app = typer.Typer(
        cls=Program,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help=_HELP,
    )
    app.callback()(options)
    groups = _groups()
    for group in [group for group in groups if command in group.sections] or groups:
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
    everything: Annotated[bool, typer.Option(_ALL, help="With --help: every command.")] = False,
) -> None:
    """The options of every command: which memory it works on."""
    context.obj = Where(home, namespace, conversations)
