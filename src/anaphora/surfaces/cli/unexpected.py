"""How a command ends on an unexpected error: one line with an incident id, and an exit code.

It imports nothing that commands load, since the cause may be a broken installation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from anaphora.system.environment import environment
from anaphora.system.incidents import TRACEBACK, report

EXIT_UNEXPECTED: Final = 70
"""The exit code after an unexpected error: EX_SOFTWARE of sysexits.h."""


def end_by(error: BaseException, words: Sequence[str]) -> NoReturn:
    """Report the error and exit; `words` are those of the command line from the command on."""
    # The command, by its known names only: other words of the line may be private text.
    names: list[str] = []
    with suppress(Exception):
        if words[:1] == ["resident"]:
            names = ["resident"]
        else:
            import typer

            from anaphora.surfaces.cli.program import program

            command: Any = typer.main.get_command(program(words[0] if words else None))
            for word in words:
                command = command.commands[word]
                names.append(word)
    operation = " ".join(names)
    incident = report(environment(), error, surface="command line", operation=operation)
    line = (
        f"anaphora: something went wrong{f' in {operation}' if operation else ''} "
        f"(incident {incident.id}): {incident.summary}. {incident.hint} "
        f"{TRACEBACK}=1 shows the traceback.\n"
    )
    with suppress(OSError, ValueError):
        sys.stderr.write(line)
        sys.stderr.flush()
    if operation in _SERVERS:
        # A thread that still waits for a disk or a model must not keep the server alive.
        os._exit(EXIT_UNEXPECTED)
    sys.exit(EXIT_UNEXPECTED)


_SERVERS: Final = ("mcp", "serve", "resident")
