"""Options that several commands have, and those that are derived from the description of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from anaphora.calls.operation import operation_of
from anaphora.calls.parameters import PARAMETERS

Json = Annotated[bool, typer.Option("--json", help="JSON for programs.")]
"""The option of every command that shows something."""

MinConfidence = Annotated[
    float | None,
    typer.Option(min=0, max=1, help=PARAMETERS["min_confidence"].meaning, show_default=False),
]

Timeout = Annotated[
    float | None, typer.Option(min=0, help=PARAMETERS["timeout"].meaning, show_default=False)
]


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
