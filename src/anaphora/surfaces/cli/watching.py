"""Watching what goes on in the background, until it stops or is interrupted."""

from __future__ import annotations

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
    try:
        while what.status().stopped is None and not ended.wait(1.0):
            pass
    except KeyboardInterrupt:
        out.print("Stopped. Everything exchanged so far is stored.")
    stopped = what.status().stopped
    if stopped is not None:
        out.print(shown(f"stopped: {stopped}", "red"))
        raise typer.Exit(1)
