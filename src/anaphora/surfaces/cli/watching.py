"""Runs a background service in the foreground until it stops or is interrupted."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import typer

from anaphora.surfaces.cli.output import console, styled

if TYPE_CHECKING:
    from anaphora.mirror.manager import Mirror
    from anaphora.sync.manager import Sync


def watch_until_stopped(what: Sync | Mirror, every: float, called: str) -> None:
    """Start it at this interval and wait; exit code 1 with the reason if it stops by itself."""
    out = console()
    ended = Event()
    if not what.start(every):
        # Raises an error that says what to do.
        what.now()
    out.print(f"{called}; Ctrl-C ends it")
    try:
        while what.status().stopped is None and not ended.wait(1.0):
            pass
    except KeyboardInterrupt:
        out.print("Stopped. Everything exchanged so far is stored.")
    stopped = what.status().stopped
    if stopped is not None:
        out.print(styled(f"stopped: {stopped}", "red"))
        raise typer.Exit(1)
