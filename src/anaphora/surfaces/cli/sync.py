"""`anaphora sync`: the same namespace on several devices.

Keys and tokens are read from a file or asked for; they are never arguments, which other users of
the machine could see.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from anaphora.errors import StoreError
from anaphora.surfaces.cli.output import Json, console, emit, give, shown, tracker
from anaphora.surfaces.cli.where import opened, place
from anaphora.surfaces.wire import counted
from anaphora.sync.loop import EVERY
from anaphora.values.sync import SyncReport, SyncStatus

app = typer.Typer(
    no_args_is_help=True,
    help="The same memory on several devices, through a place that cannot read it.",
)


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.add_typer(app, name="sync")


@app.command()
def init(
    context: typer.Context,
    remote: Annotated[
        str,
        typer.Argument(help="A folder, a server (https://…), or s3://bucket/prefix?endpoint=…"),
    ],
    join: Annotated[
        bool, typer.Option("--join", help="Join the project whose key is asked for.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            parser=place, metavar="PATH", help="Join, and read the key from a file; - for stdin."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            parser=place,
            metavar="PATH",
            help="Read the server's token, or `key id:secret key` of S3, from a file.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sync this namespace with a remote. Nothing is sent before `sync now`."""
    key = _secret(key_file)
    if key is None and join:
        key = str(typer.prompt("Key", hide_input=True))
    with opened(context, begins=True) as memory:
        if "://" not in remote:
            remote = str(Path(remote).expanduser().absolute())
        status = memory.sync.init(remote, token=_secret(token_file), key=key)
    give(status, _show_begun, as_json=as_json)


@app.command()
def now(context: typer.Context, as_json: Json = False) -> None:
    """Send what is new here, and take in what other devices have sent."""
    with opened(context) as memory, tracker(quiet=as_json) as progress:
        report = memory.sync.now(progress=progress)
    give(report, _show_report, as_json=as_json)


@app.command()
def watch(
    context: typer.Context,
    every: Annotated[float, typer.Option(min=1, help="Seconds between two exchanges.")] = EVERY,
) -> None:
    """Exchange again and again, until interrupted."""
    out = console()
    ended = Event()
    with opened(context) as memory:
        memory.on("sync", _show_report)
        if not memory.sync.start(every):
            # It says what to do.
            memory.sync.now()
        out.print("syncing; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            while memory.sync.status().stopped is None and not ended.wait(1.0):
                pass
        stopped = memory.sync.status().stopped
    if stopped is not None:
        out.print(shown(f"stopped: {stopped}", "red"))
        raise typer.Exit(1)


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """How far sync has come: devices, what waits, and why it stopped."""
    with opened(context) as memory:
        found = memory.sync.status()
    give(found, _show_status, as_json=as_json)


@app.command()
def key(context: typer.Context, as_json: Json = False) -> None:
    """Print the key with which another device joins. Whoever has it can read everything."""
    with opened(context) as memory:
        exported = memory.sync.export_key()
    if as_json:
        emit({"key": exported})
    else:
        sys.stdout.write(exported + "\n")


@app.command()
def fork(context: typer.Context, as_json: Json = False) -> None:
    """Go on as a device of its own: a home that was copied, or restored from a backup."""
    with opened(context) as memory:
        found = memory.sync.fork()
    give(found, f"this is device {found.device} now", as_json=as_json)


@app.command()
def leave(context: typer.Context, as_json: Json = False) -> None:
    """Stop syncing this namespace. What is here stays; the remote keeps what it has."""
    with opened(context) as memory:
        memory.sync.leave()
    give({"done": "left"}, "left", as_json=as_json)


def _show_begun(status: SyncStatus) -> None:
    out = console()
    out.print(shown(f"project {status.project}, device {status.device}"))
    out.print("run `anaphora sync now`; for another device, `anaphora sync key` gives the key")


def _show_report(report: SyncReport) -> None:
    sent = counted(report.sent, "entry", "entries")
    console().print(f"sent {sent}, received {counted(report.received, 'entry', 'entries')}")


def _show_status(status: SyncStatus) -> None:
    out = console()
    if not status.project:
        out.print("not synced: `anaphora sync init REMOTE`")
        return
    out.print(shown(f"project {status.project}"))
    out.print(shown(f"remote  {status.remote}"))
    last = "never" if status.last_synced is None else f"{status.last_synced:%Y-%m-%d %H:%M}"
    out.print(f"synced  {last}; {status.waiting} to be sent")
    for device, number in status.devices.items():
        mark = "  (this one)" if device == status.device else ""
        out.print(shown(f"device  {device}  {number}{mark}"))
    if status.stopped is not None:
        out.print(shown(f"stopped: {status.stopped}", "red"))


def _secret(path: Path | None) -> str | None:
    if path is None:
        return None
    if str(path) == "-":
        return sys.stdin.read().strip()
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise StoreError("read", path, str(error)) from error
