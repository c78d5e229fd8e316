"""Runs a background service in the foreground until it stops or is interrupted."""

from __future__ import annotations

from threading import Event
from typing import Protocol

import typer

from anaphora.surfaces.cli.output import console, styled


class WatchState(Protocol):
    """Whether repeated work has stopped by itself, and why."""

    @property
    def stopped(self) -> str | None:
        """Why it has stopped; None while it has not."""
        ...


class Repeatable(Protocol):
    """Work that is done once, or repeatedly in a thread."""

    def now(self) -> object:
        """Do it once."""
        ...

    def start(self, every: float) -> bool:
        """Begin to repeat it; False if that is not possible."""
        ...

    def status(self) -> WatchState:
        """The state of the repeated work."""
        ...


def watch_until_stopped(what: Repeatable, every: float, called: str) -> None:
    """Start it at this interval and wait; exit code 1 with the reason if it stops by itself."""
    terminal = console()
    end_event = Event()
    if not what.start(every):
        # Raises an error that says what to do.
        what.now()
    terminal.print(f"{called}; Ctrl-C ends it")
    try:
        while what.status().stopped is None and not end_event.wait(1.0):
            pass
    except KeyboardInterrupt:
        terminal.print("Stopped. Everything exchanged so far is stored.")
    stop_reason = what.status().stopped
    if stop_reason is not None:
        terminal.print(styled(f"stopped: {stop_reason}", "red"))
        raise typer.Exit(1)
