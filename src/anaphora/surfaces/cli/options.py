"""Options as typer takes them: of tables, of the descriptions of calls, and shared ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from anaphora.calls.operation import operation_of
from anaphora.surfaces.cli.grammar import Option
from anaphora.surfaces.cli.shared import AS_JSON, MIN_CONFIDENCE, TIMEOUT


def typer_option(option: Option, **further: Any) -> Any:
    """The option for an annotation that typer reads."""
    return typer.Option(
        *option.typed_names(),
        help=option.help,
        metavar=option.metavar,
        min=option.least,
        max=option.most,
        **further,
    )


def add_command(app: typer.Typer, call: Callable[..., None], options: Sequence[Option]) -> None:
    """Add the command that `call` is: of a `Where` and the options by their parameters."""

    def command(context: typer.Context, **values: Any) -> None:
        call(context.obj, **values)

    context = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    command.__signature__ = Signature([context, *map(_parameter, options)])  # type: ignore[attr-defined]
    app.command(call.__name__, help=call.__doc__)(command)


def _parameter(option: Option) -> Parameter:
    kind: Any = list[option.kind] if option.is_repeated else option.kind  # type: ignore[name-defined]
    default = Parameter.empty if option.is_argument else option.default
    if default is None:
        kind |= None
    described = typer.Argument(help=option.help) if option.is_argument else typer_option(option)
    return Parameter(
        option.parameter,
        Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, described],
    )


Json = Annotated[bool, typer_option(AS_JSON)]
"""The option of every command that shows something."""

MinConfidence = Annotated[float | None, typer_option(MIN_CONFIDENCE)]

Timeout = Annotated[float | None, typer_option(TIMEOUT)]


def option(call: Callable[..., Any], name: str, *flags: str, more: str = "") -> Any:
    """The option for a parameter of a call: its meaning, with `more` after it, and its least value.

    A command has no upper bound: it runs on the user's own machine.
    """
    described = operation_of(call).describe(name)
    # `least` of a text is its length.
    least = described.least if not described.pattern else None
    return typer.Option(*flags, min=least, help=f"{described.meaning} {more}".strip())


def argument(call: Callable[..., Any], name: str) -> Any:
    """The argument for a parameter of a call."""
    return typer.Argument(help=operation_of(call).describe(name).meaning)
