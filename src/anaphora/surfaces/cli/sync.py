"""`anaphora sync`: the same namespace on several devices.

Keys and tokens are read from a file or asked for; they are never arguments, which other users of
the machine could see.
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

from anaphora.core.short_ids import short_id
from anaphora.core.shown_times import shown_minute
from anaphora.errors import StoreError
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import console, emit, give, shown, table
from anaphora.surfaces.cli.progress import AGAIN, READ, long_work
from anaphora.surfaces.cli.watching import watch_until_stopped
from anaphora.surfaces.cli.where import opened, place
from anaphora.surfaces.wire import counted, time_of
from anaphora.values.sync import (
    SYNC_EVERY,
    SyncConflict,
    SyncDevice,
    SyncEntry,
    SyncReport,
    SyncRollback,
    SyncStatus,
    SyncVerification,
)

_LONGEST_CODE: Final = 20
_KEPT: Final = f"Everything sent and received so far is stored. {AGAIN}"
_ENTRY_ID: Final = re.compile(r"[0-9a-f]{64}")

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
        bool,
        typer.Option("--join", help="Join: asks for the code that `sync pair` shows, or a key."),
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="What other devices call this one; by default its host name.")
    ] = None,
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
    key, code = _secret(key_file), None
    if key is None and join:
        typed = str(typer.prompt("Code or key", hide_input=True)).strip()
        key, code = (typed, None) if len(typed) > _LONGEST_CODE else (None, typed)
    with opened(context, begins=True) as memory:
        status = memory.sync.init(
            _address(remote),
            token=_secret(token_file),
            code=code,
            key=key,
            name=platform.node() if name is None else name,
        )
    give(status, _show_begun, as_json=as_json)


@app.command()
def now(context: typer.Context, as_json: Json = False) -> None:
    """Send what is new here, and take in what other devices have sent."""
    with opened(context) as memory, long_work("Syncing", kept=_KEPT, quiet=as_json) as progress:
        report = memory.sync.now(progress=progress)
    give(report, _show_report, as_json=as_json)


@app.command()
def watch(
    context: typer.Context,
    every: Annotated[
        float, typer.Option(min=1, help="Seconds between two exchanges.")
    ] = SYNC_EVERY,
) -> None:
    """Exchange again and again, until interrupted."""
    with opened(context) as memory:
        memory.on("sync", _show_report)
        watch_until_stopped(memory.sync, every, "syncing")


@app.command()
def status(context: typer.Context, as_json: Json = False) -> None:
    """Show devices, what waits to be sent, open conflicts, and why sync stopped."""
    with opened(context) as memory:
        found = memory.sync.status()
        conflicts = memory.sync.conflicts() if found.project else ()
    give(found, _show_status, as_json=as_json)
    if not as_json:
        _show_conflicts(conflicts)


@app.command()
def pair(context: typer.Context, as_json: Json = False) -> None:
    """Show a code that lets one device join, and wait until it was typed there."""
    with opened(context) as memory:
        pairing = memory.sync.pair()
        if as_json:
            emit({"code": pairing.code})
            sys.stdout.flush()
        else:
            out = console()
            out.print(shown(pairing.code, "bold"))
            out.print("on the other device: `anaphora sync init REMOTE --join`, and this code")
        pairing.wait()
    give({"done": "paired"}, "paired; `anaphora sync now` on both", as_json=as_json)


@app.command()
def devices(context: typer.Context, as_json: Json = False) -> None:
    """List the devices that share this namespace."""
    with opened(context) as memory:
        found = memory.sync.devices()
    give(list(found), _show_devices, as_json=as_json)


@app.command()
def remove(
    context: typer.Context,
    device: Annotated[str, typer.Argument(help="Its identifier, or its name.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove a device. The others continue with a new key that it does not have."""
    with opened(context) as memory:
        if not yes:
            typer.confirm(f"Remove {device}? What it has, it keeps.", abort=True)
        with long_work("Removing the device", kept=_KEPT, quiet=as_json) as progress:
            found = memory.sync.remove(device, progress=progress)
    give(list(found), _show_devices, as_json=as_json)


@app.command()
def verify(context: typer.Context, as_json: Json = False) -> None:
    """Check that everything in the remote is what was sent and read."""
    with opened(context) as memory, long_work("Verifying", kept=READ, quiet=as_json) as progress:
        found = memory.sync.verify(progress=progress)
    give(found, _show_verified, as_json=as_json)


@app.command()
def compact(context: typer.Context, as_json: Json = False) -> None:
    """Rewrite the current state in few entries and empty the others. It also runs automatically."""
    with opened(context) as memory, long_work("Compacting", kept=_KEPT, quiet=as_json) as progress:
        report = memory.sync.compact(progress=progress)
    give(report, _show_report, as_json=as_json)


@app.command()
def rollback(
    context: typer.Context,
    to: Annotated[
        str, typer.Argument(help="A time such as 2026-05-01T12:00, or the id of an entry.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Make the memories of that time current again, on all devices. History stays."""
    with opened(context) as memory:
        at = to if _ENTRY_ID.fullmatch(to) else time_of("to", to)
        assert at is not None
        if not dry_run and not yes:
            _show_rollback(memory.sync.rollback(at, dry_run=True))
            typer.confirm("Do this?", abort=True)
        done = memory.sync.rollback(at, dry_run=dry_run)
    give(done, _show_rollback, as_json=as_json)


@app.command("open")
def open_payload(
    context: typer.Context,
    payload: Annotated[
        Path,
        typer.Argument(parser=place, help="The server's answer, or its payload; - for stdin."),
    ],
    as_json: Json = False,
) -> None:
    """Open an entry that a server gave for a query_hash, with this device's keys."""
    with opened(context) as memory:
        found = memory.sync.open(_read(payload))
    give(found, _show_entry, as_json=as_json)


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
    out.print("run `anaphora sync now`; another device joins by `anaphora sync pair`")


def _show_report(report: SyncReport) -> None:
    sent = counted(report.sent, "entry", "entries")
    console().print(f"sent {sent}, received {counted(report.received, 'entry', 'entries')}")
    _show_conflicts(report.conflicts)


def _show_conflicts(conflicts: Sequence[SyncConflict]) -> None:
    """Each conflict in words, and how the other side becomes the current one."""
    out = console()
    for conflict in conflicts:
        earlier, later = conflict.earlier, conflict.later
        out.print(shown(f"conflict: {conflict.summary}", "yellow"), soft_wrap=True)
        if earlier.current and later.current:
            step = f"forget the wrong one: anaphora forget {short_id(earlier.memory)}"
            step += f" (or {short_id(later.memory)})"
        else:
            other = later if earlier.current else earlier
            path = shlex.quote(conflict.path)
            step = "to make the other one current: "
            step += f"anaphora remember {shlex.quote(other.text)} --path {path}"
        out.print(shown(f"  next: {step}", "dim"), soft_wrap=True)


def _show_status(status: SyncStatus) -> None:
    out = console()
    if not status.project:
        out.print("not synced: `anaphora sync init REMOTE`")
        return
    out.print(shown(f"project {status.project}"))
    out.print(shown(f"remote  {status.remote}"))
    last = "never" if status.last_synced is None else shown_minute(status.last_synced)
    out.print(f"synced  {last}; {status.backlog}")
    out.print(f"devices {len(status.devices)}: `anaphora sync devices`")
    if status.stopped is not None:
        out.print(shown(f"stopped: {status.stopped}", "red"))


def _show_devices(found: list[SyncDevice]) -> None:
    rows = []
    for one in found:
        written = "never" if one.last_written is None else shown_minute(one.last_written)
        state = "removed" if one.removed else "this one" if one.this else ""
        rows.append((one.device, one.name, one.entries, written, state))
    console().print(table("Devices", ("device", "name", "entries", "last written", ""), rows))


def _show_entry(entry: SyncEntry) -> None:
    out = console()
    made = "" if entry.at is None else f", {shown_minute(entry.at)}"
    out.print(shown(f"entry {entry.number} of device {entry.device}{made}"))
    if entry.without_content:
        out.print("it has no content any more")
    elif not entry.signed:
        out.print("its device is not known here yet: `anaphora sync now`")
    for item in entry.items:
        out.print(shown(f"{item.kind} {item.id}{' (forgotten)' if item.forgotten else ''}", "bold"))
        for name, value in {**item.values, **item.added}.items():
            out.print(shown(f"  {name}: {json.dumps(value, ensure_ascii=False)}"))


def _show_verified(found: SyncVerification) -> None:
    entries = counted(found.entries, "entry", "entries")
    text = f"{entries} of {counted(found.devices, 'device')} are unchanged"
    gone = f"; {found.without_content} were emptied on purpose"
    console().print(text + (gone if found.without_content else ""))


def _show_rollback(found: SyncRollback) -> None:
    console().print(
        f"to {shown_minute(found.to, seconds=True)}: {len(found.restated)} stated again, "
        f"{len(found.hidden)} hidden, {len(found.shown)} shown again"
    )


def begin_syncing(context: typer.Context, remote: str) -> None:
    """Begin a project with a remote, unless this namespace is synced already, and say so."""
    with opened(context, begins=True) as memory:
        status = memory.sync.status()
        if not status.project:
            status = memory.sync.init(_address(remote), name=platform.node())
    console(stderr=True).print(shown(f"synced with {status.remote}: `anaphora sync now`"))


def _address(given: str) -> str:
    """The address of a remote as it was typed: a folder from where one stands."""
    return given if "://" in given else str(Path(given).expanduser().absolute())


def _secret(path: Path | None) -> str | None:
    return None if path is None else _read(path)


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read().strip()
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise StoreError("read", path, str(error)) from error
