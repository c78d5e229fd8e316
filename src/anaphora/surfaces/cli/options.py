"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from anaphora.surfaces.meanings import LIMIT, meaning

Json = Annotated[bool, typer.Option("--json", help="JSON for programs.")]
"""The option of every command that shows something."""

MinConfidence = Annotated[
    float | None, typer.Option(min=0, max=1, help=meaning("min_confidence"), show_default=False)
]

Timeout = Annotated[float | None, typer.Option(min=0, help=LIMIT, show_default=False)]
