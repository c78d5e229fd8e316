"""`anaphora sync`: the same namespace on several devices.

Keys and tokens are read from a file or asked for; they are never arguments, since other users of
the machine can see those.
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from anaphora.errors import StoreError
from anaphora.features.sync.values import (
    SYNC_EVERY,
    SyncConflict,
    SyncDevice,
    SyncEntry,
    SyncReport,
    SyncRollback,
    SyncStatus,
)
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, emit, present, styled, table
from anaphora.surfaces.cli.progress import AGAIN, READ, long_work
from anaphora.surfaces.cli.watching import watch_until_stopped
from anaphora.surfaces.cli.where import open_memory, typed_address, typed_path
from anaphora.surfaces.wire import counted, time_of
from anaphora.text.short_ids import short_id
from anaphora.text.shown_times import shown_minute

_LONGEST_CODE: Final = 20
_KEPT: Final = f"Everything sent and received so far is stored. {AGAIN}"
_ENTRY_ID: Final = re.compile(r"[0-9a-f]{64}")

app = typer.Typer(
    no_args_is_help=True,
    help="The same memory on several devices, through a remote that cannot read it.",
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
        bool,
        typer.Option("--join", help="Join: asks for the code that `sync pair` shows, or a key."),
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="This device's name (default: its host name).")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            parser=typed_path,
            metavar="PATH",
            help="Join, and read the key from a file; - for stdin.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            parser=typed_path,
            metavar="PATH",
            help="Read the server's token, or `key id:secret key` of S3, from a file.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sync this namespace with a remote. Nothing is sent before `sync now`."""
    key, code = _secret(key_file), None
    if key is None and join:
        typed_code = str(typer.prompt("Code or key", hide_input=True)).strip()
        key, code = (typed_code, None) if len(typed_code) > _LONGEST_CODE else (None, typed_code)
    with open_memory(context, begins=True) as memory:
        status = memory.sync.init(
            typed_address(remote),
            token=_secret(token_file),
            code=code,
            key=key,
            name=platform.node() if name is None else name,
        )
    present(status, _show_joined, as_json=as_json)


@app.command()
def now(context: typer.Context, as_json: Json = False) -> None:
    """Send what is new here, and take in what other devices have sent."""
    with (
        open_memory(context) as memory,
        long_work("Syncing", kept=_KEPT, quiet=as_json) as progress,
    ):
        report = memory.sync.now(progress=progress)
    present(report, _show_report, as_json=as_json)


@app.command()
def watch(
    context: typer.Context,
    every: Annotated[
        float, typer.Option(min=1, help="Seconds between two exchanges.")
    ] = SYNC_EVERY,
) -> None:
    """Exchange repeatedly until interrupted."""
    with open_memory(context) as memory:
        memory.on("sync", _show_report)
        watch_until_stopped(memory.sync, every, "syncing")


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show devices, what waits to be sent, open conflicts, and why sync stopped."""
    with open_memory(context) as memory:
        state = memory.sync.status()
        conflicts = memory.sync.conflicts() if state.project else ()
    present(state, _show_status, as_json=as_json)
    if not as_json:
        _show_conflicts(conflicts)


@app.command()
def pair(context: typer.Context, as_json: Json = False) -> None:
    """Show a code that lets one device join, and wait until it was typed there."""
    with open_memory(context) as memory:
        pairing = memory.sync.pair()
        if as_json:
            emit({"code": pairing.code})
            sys.stdout.flush()
        else:
            terminal = console()
            terminal.print(styled(pairing.code, "bold"))
            terminal.print("on the other device: `anaphora sync init REMOTE --join`, and this code")
        pairing.wait()
    present({"done": "paired"}, "paired; `anaphora sync now` on both", as_json=as_json)


@app.command()
def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that share this namespace."""
    with open_memory(context) as memory:
        members = memory.sync.devices()
    present(list(members), _show_devices, as_json=as_json)


@app.command()
def remove(
    context: typer.Context,
    device: Annotated[str, typer.Argument(help="Its identifier, or its name.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a device. The others continue with a new key that it does not have."""
    with open_memory(context) as memory:
        if not yes:
            typer.confirm(f"Remove {device}? It keeps the data it has.", abort=True)
        with long_work("Removing the device", kept=_KEPT, quiet=as_json) as progress:
            members = memory.sync.remove(device, progress=progress)
    present(list(members), _show_devices, as_json=as_json)


@app.command()
def verify(context: typer.Context, as_json: Json = False) -> None:
    """Check that everything in the remote is what was sent and read."""
    with (
        open_memory(context) as memory,
        long_work("Verifying", kept=READ, quiet=as_json) as progress,
    ):
        report = memory.sync.verify(progress=progress)
    entries = counted(report.entries, "entry", "entries")
    text = f"{entries} of {counted(report.devices, 'device')} are unchanged"
    if report.without_content:
        text += f"; {report.without_content} were emptied on purpose"
    present(report, text, as_json=as_json)


@app.command()
def compact(context: typer.Context, as_json: Json = False) -> None:
    """Rewrite the current state in few entries and empty the others. It also runs automatically."""
    with (
        open_memory(context) as memory,
        long_work("Compacting", kept=_KEPT, quiet=as_json) as progress,
    ):
        report = memory.sync.compact(progress=progress)
    present(report, _show_report, as_json=as_json)


@app.command()
def rollback(
    context: typer.Context,
    to: Annotated[
        str, typer.Argument(help="A time such as 2026-05-01T12:00, or the id of an entry.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show only, change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Make the memories of that time current again, on all devices. History stays."""
    with open_memory(context) as memory:
        at = to if _ENTRY_ID.fullmatch(to) else time_of("to", to)
        assert at is not None
        if not dry_run and not yes:
            _show_rollback(memory.sync.rollback(at, dry_run=True))
            typer.confirm("Do this?", abort=True)
        report = memory.sync.rollback(at, dry_run=dry_run)
    present(report, _show_rollback, as_json=as_json)


@app.command("open")
def open_payload(
    context: typer.Context,
    payload: Annotated[
        Path,
        typer.Argument(parser=typed_path, help="The server's answer, or its payload; - for stdin."),
    ],
    as_json: Json = False,
) -> None:
    """Open an entry that a server gave for a query_hash, with this device's keys."""
    with open_memory(context) as memory:
        opened_payload = memory.sync.open(_read(payload))
    present(opened_payload, _show_entry, as_json=as_json)


@app.command()
def key(context: typer.Context, as_json: Json = False) -> None:
    """Print the key for joining another device. It gives access to everything."""
    with open_memory(context) as memory:
        exported_key = memory.sync.export_key()
    if as_json:
        emit({"key": exported_key})
    else:
        sys.stdout.write(exported_key + "\n")


@app.command()
def fork(context: typer.Context, as_json: Json = False) -> None:
    """Continue as a new device, after a home was copied or restored from a backup."""
    with open_memory(context) as memory:
        state = memory.sync.fork()
    present(state, f"this is device {state.device} now", as_json=as_json)


@app.command()
def leave(context: typer.Context, as_json: Json = False) -> None:
    """Stop syncing this namespace. Local and remote data stay."""
    with open_memory(context) as memory:
        memory.sync.leave()
    present({"done": "left"}, "left", as_json=as_json)


def _show_joined(status: SyncStatus) -> None:
    terminal = console()
    terminal.print(styled(f"project {status.project}, device {status.device}"))
    terminal.print("run `anaphora sync now`; another device joins by `anaphora sync pair`")


def _show_report(report: SyncReport) -> None:
    sent = counted(report.sent, "entry", "entries")
    console().print(f"sent {sent}, received {counted(report.received, 'entry', 'entries')}")
    _show_conflicts(report.conflicts)


def _show_conflicts(conflicts: Sequence[SyncConflict]) -> None:
    """Describe each conflict, and how to make the other side current."""
    terminal = console()
    for conflict in conflicts:
        earlier, later = conflict.earlier, conflict.later
        terminal.print(styled(f"conflict: {conflict.summary}", "yellow"), soft_wrap=True)
        if earlier.current and later.current:
            step = f"forget the wrong one: anaphora forget {short_id(earlier.memory)}"
            step += f" (or {short_id(later.memory)})"
        else:
            side = later if earlier.current else earlier
            path = shlex.quote(conflict.path)
            step = "to make the other one current: "
            step += f"anaphora remember {shlex.quote(side.text)} --path {path}"
        terminal.print(styled(f"  next: {step}", "dim"), soft_wrap=True)


def _show_status(status: SyncStatus) -> None:
    terminal = console()
    if not status.project:
        terminal.print("not synced: `anaphora sync init REMOTE`")
        return
    terminal.print(styled(f"project {status.project}"))
    terminal.print(styled(f"remote  {status.remote}"))
    last_time = "never" if status.last_synced is None else shown_minute(status.last_synced)
    terminal.print(f"synced  {last_time}; {status.backlog}")
    terminal.print(f"devices {len(status.devices)}: `anaphora sync devices`")
    if status.stopped is not None:
        terminal.print(styled(f"stopped: {status.stopped}", "red"))


def _show_devices(devices: list[SyncDevice]) -> None:
    rows = []
    for device in devices:
        written_time = "never" if device.last_written is None else shown_minute(device.last_written)
        state = "removed" if device.removed else "this one" if device.this else ""
        rows.append((device.device, device.name, device.entries, written_time, state))
    console().print(table("Devices", ("device", "name", "entries", "last written", ""), rows))


def _show_entry(entry: SyncEntry) -> None:
    terminal = console()
    when = "" if entry.at is None else f", {shown_minute(entry.at)}"
    terminal.print(styled(f"entry {entry.number} of device {entry.device}{when}"))
    if entry.without_content:
        terminal.print("its content was deleted")
    elif not entry.signed:
        terminal.print("its device is not known here yet: `anaphora sync now`")
    for row in entry.items:
        terminal.print(
            styled(f"{row.kind} {row.id}{' (forgotten)' if row.forgotten else ''}", "bold")
        )
        for name, field in {**row.values, **row.added}.items():
            terminal.print(styled(f"  {name}: {json.dumps(field, ensure_ascii=False)}"))


def _show_rollback(found: SyncRollback) -> None:
    console().print(
        f"to {shown_minute(found.to, seconds=True)}: {len(found.restated)} stated again, "
        f"{len(found.hidden)} hidden, {len(found.shown)} shown again"
    )


def _secret(path: Path | None) -> str | None:
    return None if path is None else _read(path)


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read().strip()
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise StoreError("read", path, str(error)) from error
