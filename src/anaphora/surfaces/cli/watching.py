"""Watching what goes on in the background, until it stops or somebody interrupts it."""

from __future__ import annotations

from contextlib import suppress
from threading import Event
from typing import TYPE_CHECKING

import typer

from anaphora.surfaces.cli.output import console, shown

if TYPE_CHECKING:
    from anaphora.mirror.manager import Mirror
    from anaphora.sync.manager import Sync


def watch_until_stopped(what: Sync | Mirror, every: float, called: str) -> None:
    """Begin it, every so many seconds, and wait; exit code 1 and the reason where it stops."""
    out = console()
    ended = Event()
    if not what.start(every):
        # It says what to do.
        what.now()
    out.print(f"{called}; Ctrl-C ends it")
    with suppress(KeyboardInterrupt):
        while what.status().stopped is None and not ended.wait(1.0):
            pass
    stopped = what.status().stopped
    if stopped is not None:
        out.print(shown(f"stopped: {stopped}", "red"))
        raise typer.Exit(1)
