"""`anaphora start`: opens the page in the browser and says what to do next, without typing."""

from __future__ import annotations

import html
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from anaphora.api.memory import Memory
from anaphora.features.server.commands import announcement, run_server
from anaphora.features.server.processes import free_port
from anaphora.ops.backup.create import DATABASE
from anaphora.settings import load_settings
from anaphora.store.crypto.marker import place_of
from anaphora.store.disk import make_directory, translate
from anaphora.surfaces.access import kept_secret
from anaphora.surfaces.cli.offers import find_offers
from anaphora.surfaces.cli.output import console
from anaphora.surfaces.cli.where import Where
from anaphora.surfaces.rest.options import DEFAULT_PORT, ServerOptions
from anaphora.surfaces.wire import counted
from anaphora.system.environment import environment

_HOST: Final = "127.0.0.1"
_PORTS: Final = range(DEFAULT_PORT, DEFAULT_PORT + 10)
_STATE: Final = "start"
"""Base name, in the folder of derived data, of the running instance's lock and port files."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(start)


def start(
    context: typer.Context,
    browser: Annotated[
        bool, typer.Option(help="Open the page in the browser; otherwise only print its address.")
    ] = True,
) -> None:
    """Open your memory in the browser, and say what to do next. Ctrl-C stops it."""
    home_options: Where = context.obj
    home = load_settings(home_options.home).home
    terminal = console()
    with (
        _page_opener(browser=browser and terminal.is_terminal) as open_page,
        _single_instance(home) as state,
    ):
        if state is None:
            # Another instance runs already: open its page.
            port = (home / "index" / f"{_STATE}.port").read_text("utf-8").strip()
            secret = None if place_of(home) is not None else kept_secret(home)
            link = f"http://{_HOST}:{port}" + (f"/#token={secret}" if secret else "")
            terminal.print(f"Anaphora runs already, in another window, at http://{_HOST}:{port}")
            if secret and terminal.is_terminal:
                terminal.print(Text(link), soft_wrap=True)
            terminal.print(open_page(link))
            return
        # Before serving: the search takes a while, and the page would wait for it.
        offers = 0 if (home / DATABASE).exists() else len(find_offers())

        def show(memory: Memory, link: str) -> None:
            state.write_text(link.rpartition(":")[2].partition("/")[0], "utf-8")
            line = announcement(link, home, to_terminal=terminal.is_terminal)
            for text in (line, open_page(link), *_describe(memory, offers)):
                # Not wrapped at any width: the first line is clicked.
                terminal.print(Text(text), soft_wrap=True)

        run_server(context, _HOST, free_port(_HOST, _PORTS), ServerOptions(), show)
    terminal.print("Stopped. Everything is stored; `anaphora start` opens it again.")


def _describe(memory: Memory, offers: int) -> Iterator[str]:
    """Say what the memory contains and what to do next; `offers` counts importable sources."""
    stats = memory.stats()
    amounts = (
        (stats.conversations, ("conversation",)),
        (stats.memories, ("memory", "memories")),
        (stats.documents, ("document",)),
    )
    parts = [counted(number, *names) for number, names in amounts if number]
    if parts:
        yield f"Your memory has {', '.join(parts)}."
        yield "Next: type a question into the search field of the page."
    else:
        nearby = f"; {counted(offers, 'source')} found on this computer" if offers else ""
        yield "Your memory is empty so far."
        yield "Next: drag an export of your chats, a PDF or your notes onto the page,"
        yield f"or run `anaphora import` in a second window (it asks what to import{nearby})."
    yield "Keep this window open meanwhile. Ctrl-C stops Anaphora; everything stays stored."


@contextmanager
def _single_instance(home: Path) -> Iterator[Path | None]:
    """The port file of this instance; None while another one runs on this home.

    A lock decides, not the port: another program that listens on the port is never mistaken for
    an instance and never gets the token.
    """
    from filelock import FileLock, Timeout

    folder = home / "index"
    try:
        make_directory(folder)
        lock = FileLock(folder / f"{_STATE}.lock", mode=0o600, timeout=0)
        lock.acquire()
    except Timeout:
        yield None
        return
    except OSError as error:
        raise translate(error, "create", folder) from error
    try:
        yield folder / f"{_STATE}.port"
    finally:
        lock.release()


@contextmanager
def _page_opener(*, browser: bool) -> Iterator[Callable[[str], str]]:
    """Yields a function that opens a link in the browser and returns a sentence about it.

    The link contains a token, and other users can see a browser's arguments: the browser gets a
    redirecting file instead, which only this user can read.
    """
    # Variables that Linux sets if there is a screen to open a browser on.
    screens = (environment().get("DISPLAY"), environment().get("WAYLAND_DISPLAY"))
    has_desktop = sys.platform in {"win32", "darwin"} or any(screens)
    with tempfile.TemporaryDirectory(prefix="anaphora-", ignore_cleanup_errors=True) as folder:

        def open_page(link: str) -> str:
            if not browser or not has_desktop:
                return "Open this address in your browser."
            page = Path(folder) / "open.html"
            target = html.escape(link, quote=True)
            page.write_text(
                f'<meta charset="utf-8"><meta http-equiv="refresh" content="0;url={target}">'
                f'<a href="{target}">Open Anaphora</a>',
                "utf-8",
            )
            with suppress(webbrowser.Error, OSError):
                if webbrowser.open(page.as_uri()):
                    return "Your browser opens it now; if it does not, open this address in it."
            return "Open this address in your browser."

        yield open_page
