"""Long work in a terminal: what is running, how far it is, and what Ctrl-C leaves behind.

All commands share one reporter. Work of less than a second shows nothing. On a terminal one line
of standard error is redrawn; a pipe or a log gets a line every ten seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import Final

import typer

from anaphora.calls.progress import Progress
from anaphora.surfaces.cli.output import console, styled
from anaphora.surfaces.cli.where import EXIT_INTERRUPTED
from anaphora.text.display import one_line

SOON: Final = 1.0
"""Seconds until something is shown on a terminal."""
EVERY: Final = 10.0
"""Seconds between two lines in a log."""
_REDRAWN: Final = 0.1
_BYTES: Final = 100_000
AGAIN: Final = "Run the same command again to go on where it stopped."
UNWRITTEN: Final = "Nothing was written and nothing is lost. Run the same command again."
READ: Final = "It only read: nothing was changed. Run the same command again."


@contextmanager
def long_work(doing: str, *, kept: str, quiet: bool = False) -> Iterator[Progress]:
    """Yields the function for reporting progress, at any rate: `(label, done, total)`.

    `doing` names the work ("Backing up"). Ctrl-C ends the command with exit code 130 and prints
    `kept`: what is stored by then, and how to continue. `quiet`: no progress, for a command whose
    output a program reads.
    """
    work = _Work(doing)
    try:
        with nullcontext() if quiet else work.watched():
            yield work.report
    except KeyboardInterrupt:
        console(stderr=True).print(styled(f"Interrupted. {kept}", "yellow"), soft_wrap=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None


class _Work:
    """The state of one piece of work. A thread draws it, so that reporting stays cheap."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._state = ("", 0, 0)
        self._ended = Event()

    def report(self, label: str, done: int, total: int) -> None:
        """Record the progress."""
        self._state = (label, done, total)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Show the progress from a thread until the work ends."""
        draw = self._redraw if sys.stderr.isatty() else self._log
        thread = Thread(target=draw, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(SOON)

    def _log(self) -> None:
        while not self._ended.wait(EVERY):
            label, done_count, total = self._state
            label_note = f": {one_line(label)}" if label else ""
            amount = f", {_amount(done_count, total)}" if total else ""
            console(stderr=True).print(styled(f"{self._doing}{label_note}{amount}"))

    def _redraw(self) -> None:
        if self._ended.wait(SOON):
            return
        # Imported late: loading it takes longer than most commands do.
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=10),
            TextColumn("{task.fields[amount]}", markup=False),
            TimeRemainingColumn(),
            TextColumn("Ctrl-C stops", style="dim"),
        )
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task, current = progress.add_task(self._doing, total=None, amount=""), ""
            while not self._ended.wait(_REDRAWN):
                label, done_count, total = self._state
                if label != current:
                    current = label
                    progress.reset(task, description=f"{self._doing}: {one_line(label)}")
                amount = _amount(done_count, total)
                progress.update(task, completed=done_count, total=total or None, amount=amount)


def _amount(done: int, total: int) -> str:
    """The progress in numbers; for large totals (bytes) as a percentage only."""
    if not total:
        return ""
    counts = f" ({done:,} of {total:,})" if total < _BYTES else ""
    return f"{done * 100 // total} %{counts}"
