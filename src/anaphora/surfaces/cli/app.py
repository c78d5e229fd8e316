"""The whole program of the command line: every command of `anaphora`."""

from __future__ import annotations

from typing import Final

from anaphora.surfaces.cli.program import program

app: Final = program()
