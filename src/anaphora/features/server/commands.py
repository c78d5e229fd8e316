"""`anaphora serve` and `token`: memory for other programs over HTTP, and access to it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from anaphora.errors import NotFound
from anaphora.settings import load_settings
from anaphora.surfaces.access import FILE
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, emit, present, styled, table
from anaphora.surfaces.cli.where import Where, open_memory, refuse_missing_home, typed_path
from anaphora.surfaces.rest.options import DEFAULT_PORT, ServerOptions
from anaphora.surfaces.wire import time_of
from anaphora.system.environment import environment
from anaphora.text.shown_times import shown_minute

if TYPE_CHECKING:
    from anaphora.api.memory import Memory

tokens = typer.Typer(no_args_is_help=True, help="Tokens: who may use the server.")


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(serve)
    app.add_typer(tokens, name="token")


def _process_count(text: str | int) -> int:
    """The number of server processes; "auto" is one per core."""
    from anaphora.features.server.processes import MOST, one_per_core

    if text == "auto":
        return one_per_core()
    try:
        count = int(text)
    except ValueError:
        count = 0
    if not 1 <= count <= MOST:
        raise typer.BadParameter(f"expected a number from 1 to {MOST}, or auto")
    return count


def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 chooses a free one.")
    ] = DEFAULT_PORT,
    require_token: Annotated[
        bool,
        typer.Option(
            "--require-token", help="Accept only tokens made by `token create`, even on loopback."
        ),
    ] = False,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Require no token: every user and program of this machine may read and change "
            "everything.",
        ),
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another host name the server may be called by.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may call the server.")
    ] = None,
    projects: Annotated[
        list[Path] | None,
        typer.Option(
            parser=typed_path,
            metavar="PATH",
            help="A folder in which tokens made with --may-index may index projects.",
        ),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Requests per second and client.")] = 0,
    burst: Annotated[int, typer.Option(min=1, help="Burst size per client.")] = 200,
    body_limit: Annotated[
        int, typer.Option(min=1, help="Maximum size of a request body, in bytes.")
    ] = ServerOptions().body_limit,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 60.0,
    dream_every: Annotated[
        float | None, typer.Option(min=0.01, help="Minutes between background dream cycles.")
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            parser=_process_count,
            metavar="N|auto",
            help="Processes that answer; auto is one a core. Each holds the model and its indexes.",
        ),
    ] = 1,
    descriptor: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the HTTP API and the web page until interrupted."""
    settings = load_settings(context.obj.home)
    options = ServerOptions(
        require_token=require_token,
        hosts=tuple(allow_host or ()),
        origins=tuple(origin.rstrip("/") for origin in allow_origin or ()),
        projects=tuple(projects or ()),
        rate=rate,
        burst=burst,
        body_limit=body_limit,
        seconds=timeout,
        dream_every=None if dream_every is None else dream_every * 60,
        # A call that waits for a database server does not compute, so more of them can run.
        computing=2 if settings.database is None else 8,
    )
    terminal = console()
    run_server(
        context,
        host,
        port,
        options,
        # Not wrapped at any width: it is clicked, or read by a program.
        lambda _, url: terminal.print(
            Text(announcement(url, settings.home, to_terminal=terminal.is_terminal)), soft_wrap=True
        ),
        open_to_all=no_token,
        processes=processes,
        descriptor=descriptor,
    )


def run_server(
    context: typer.Context,
    host: str,
    port: int,
    options: ServerOptions,
    on_start: Callable[[Memory, str], None],
    *,
    open_to_all: bool = False,
    processes: int = 1,
    descriptor: int | None = None,
) -> None:
    """Serve the command line's memory until interrupted; see `rest.serve`.

    `on_start` gets the memory and the link to the page, once it can be opened.
    """
    from anaphora.features.server import serving as rest
    from anaphora.surfaces.logs import server_logs

    settings = load_settings(context.obj.home)
    kind = settings.embedder.partition(":")[0]
    is_path = "/" in kind or "\\" in kind or kind.startswith((".", "~"))
    # Started before opening, so that background work logs as well.
    with (
        server_logs(environment(), "http"),
        open_memory(context, warm=True, begins=True) as memory,
    ):
        if descriptor is None:
            memory.sync.start()
            memory.mirror.start()
        rest.serve(
            memory,
            host,
            port,
            options,
            open_to_all=open_to_all,
            processes=processes,
            command=(sys.executable, "-m", "anaphora", *sys.argv[1:]),
            descriptor=descriptor,
            facts={
                "home": settings.home,
                "database": "SQLite" if settings.database is None else "PostgreSQL",
                # Without an address or a path, which do not belong in a log.
                "embedder": "a folder" if is_path else kind,
            },
            on_start=lambda url: on_start(memory, url),
        )


def announcement(url: str, home: Path, *, to_terminal: bool) -> str:
    """The server's address. The link's token is shown on a terminal only, never in logs."""
    address, mark, _ = url.partition("/#token=")
    if to_terminal or not mark:
        return f"Anaphora is at {url} (Ctrl-C ends it)"
    way = "`anaphora token own` shows its token"
    if not (home / FILE).is_file():
        # A sealed home has no token file.
        way = "`anaphora token create NAME` makes a token"
    return f"Anaphora is at {address} ({way}; Ctrl-C ends it)"


@tokens.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What it is for, e.g. the agent's name.")],
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="A namespace it gives access to; may be repeated; '*' for all."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="It can only read.")] = False,
    may_index: Annotated[
        bool,
        typer.Option("--may-index", help="It may index folders under `serve --projects`."),
    ] = False,
    expires: Annotated[str | None, typer.Option(help="When it expires, RFC 3339.")] = None,
    person: Annotated[
        str,
        typer.Option(help="The person it is for; recorded with everything written with it."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Create a token. It is shown once: only its hash is stored."""
    home_options: Where = context.obj
    with open_memory(context, begins=True) as memory:
        issued_token = memory.tokens.create(
            name,
            namespaces=tuple(namespace or (home_options.namespace,)),
            read_only=read_only,
            may_index=may_index,
            expires_at=time_of("expires", expires),
            person=person,
        )
    if as_json:
        emit(issued_token)
        return
    terminal = console()
    terminal.print(Text(issued_token.secret))
    opens = ", ".join(issued_token.token.namespaces)
    terminal.print(
        styled(
            f"{issued_token.token.name} gives access to {opens}; save it now, it is not shown again"
        )
    )


@tokens.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the tokens, and what each gives access to."""
    with open_memory(context) as memory:
        issued_tokens = memory.tokens.list()
    now = datetime.now(UTC)
    rows = [
        (
            token.id,
            token.name,
            token.person,
            ", ".join(token.namespaces)
            + (" (reads)" if token.read_only else " (indexes)" if token.may_index else ""),
            "revoked" if token.revoked_at else "valid" if token.alive(now) else "expired",
            shown_minute(token.last_used) if token.last_used else "never",
        )
        for token in issued_tokens
    ]
    columns = ("id", "name", "person", "opens", "state", "used")
    present(issued_tokens, table("", columns, rows) if rows else "no tokens", as_json=as_json)


@tokens.command()
def own(context: typer.Context, as_json: Json = False) -> None:
    """Show the token of your own servers on this machine, for your programs. `serve` makes it."""
    from anaphora.store.crypto.marker import place_of
    from anaphora.surfaces import access

    home_options: Where = context.obj
    home = load_settings(home_options.home).home
    secret = None if place_of(home) is not None else access.kept_secret(home)
    if secret is None:
        refuse_missing_home(home_options)
        # A sealed home has no token file: a copy of its files must not give access.
        kind = "token file (`anaphora serve` makes it, but none in a sealed home)"
        raise NotFound(kind, str(home / access.FILE))
    if as_json:
        emit({"secret": secret})
    else:
        console().print(Text(secret), soft_wrap=True)


@tokens.command()
def revoke(
    context: typer.Context,
    which: Annotated[str, typer.Argument(metavar="ID|NAME", help="The token's id or name.")],
    as_json: Json = False,
) -> None:
    """Revoke a token, effective immediately."""
    with open_memory(context) as memory:
        revoked_token = memory.tokens.revoke(which)
    present(revoked_token, f"revoked {revoked_token.name} ({revoked_token.id})", as_json=as_json)
