"""`anaphora encrypt`, `decrypt` and `key`: a home's encryption and its key.

A passphrase is asked for, or read from a file; it is never an argument, since other users of the
machine can see those.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from anaphora import keys
from anaphora.errors import InvalidInput, StoreError
from anaphora.surfaces.cli.options import Json
from anaphora.surfaces.cli.output import EXIT_PARTLY, console, emit, present, styled
from anaphora.surfaces.cli.progress import AGAIN, long_work
from anaphora.surfaces.cli.where import require_whole_home, typed_path
from anaphora.surfaces.wire import counted

app = typer.Typer(
    no_args_is_help=True, help="The key of an encrypted home: export, import, rotate."
)

_CONVERTED = f"What was converted so far stays so, and everything can be read. {AGAIN}"
KeptIn = Annotated[
    str | None,
    typer.Option(
        "--kept",
        help="keychain, or file (master.key in the home: a copy of the home has the key).",
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        parser=typed_path,
        metavar="PATH",
        help="Read the passphrase from the first line of a file (default: ask for it).",
    ),
]


def register(program: typer.Typer) -> None:
    """Add the commands to the program."""
    program.command()(encrypt)
    program.command()(decrypt)
    program.add_typer(app, name="key")


def encrypt(context: typer.Context, kept: KeptIn = "keychain", as_json: Json = False) -> None:
    """Encrypt the home: memories, vectors, threads, index. Export the key afterwards."""
    home_options = require_whole_home(context, "encrypt", begins=True)
    with long_work("Encrypting", kept=_CONVERTED, quiet=as_json) as progress:
        report = keys.encrypt(
            home_options.home,
            kept=cast(keys.Kept, kept),
            conversations_dir=home_options.conversations,
            progress=progress,
        )
    _show(report, as_json, f"encrypted: {_contents(report)}")
    if not as_json:
        console(stderr=True).print(
            Text("without the key the data is lost: run `anaphora key export` now", "yellow")
        )
    if report.problems:
        raise typer.Exit(EXIT_PARTLY)


def decrypt(context: typer.Context, as_json: Json = False) -> None:
    """Decrypt the home, and delete its key."""
    home_options = require_whole_home(context, "decrypt")
    with long_work("Decrypting", kept=_CONVERTED, quiet=as_json) as progress:
        report = keys.decrypt(
            home_options.home, conversations_dir=home_options.conversations, progress=progress
        )
    _show(report, as_json, f"decrypted: {_contents(report)}")
    if report.problems:
        raise typer.Exit(EXIT_PARTLY)


def _contents(done: keys.Converted) -> str:
    return f"{counted(done.rows, 'row')}, {counted(done.threads, 'thread')}"


def _show(done: keys.Converted, as_json: bool, line: str) -> None:
    if as_json:
        emit(done)
        return
    terminal = console()
    terminal.print(line)
    for problem in done.problems:
        terminal.print(styled(f"  not converted: {problem}", "yellow"))
    for path in done.left_in_clear:
        terminal.print(styled(f"  not one of our files, left unencrypted: {path}", "yellow"))


@app.command("export")
def export(
    context: typer.Context,
    passphrase_file: PassphraseFile = None,
    raw: Annotated[bool, typer.Option("--raw", help="The key itself, unprotected.")] = False,
    as_json: Json = False,
) -> None:
    """Print the key, protected by a passphrase. Store it away from the home."""
    home_options = require_whole_home(context, "key export")
    phrase = None if raw else _passphrase(passphrase_file, confirm=True)
    exported_key = keys.export_key(home_options.home, phrase, raw=raw)
    if as_json:
        emit({"key": exported_key})
    else:
        sys.stdout.write(exported_key + "\n")


@app.command("import")
def import_(
    context: typer.Context,
    path: Annotated[
        Path, typer.Argument(parser=typed_path, help="What `key export` printed; - for stdin.")
    ],
    passphrase_file: PassphraseFile = None,
    kept: KeptIn = None,
    as_json: Json = False,
) -> None:
    """Import an exported key for this home, after a restore or on another machine."""
    home_options = require_whole_home(context, "key import")
    exported_key = sys.stdin.read() if str(path) == "-" else _read(path)
    # Only a key exported with a passphrase is JSON.
    phrase = _passphrase(passphrase_file) if exported_key.lstrip().startswith("{") else None
    keys.import_key(home_options.home, exported_key, phrase, kept=cast("keys.Kept | None", kept))
    present({"done": "imported"}, "imported", as_json=as_json)


@app.command("rotate")
def rotate(
    context: typer.Context,
    deep: Annotated[bool, typer.Option("--deep", help="Encrypt everything again.")] = False,
    kept: KeptIn = None,
    as_json: Json = False,
) -> None:
    """Make a new key; the old one then opens only older backups. Export the new one afterwards."""
    home_options = require_whole_home(context, "key rotate")
    with long_work("Encrypting again", kept=_CONVERTED, quiet=as_json):
        keys.rotate_key(
            home_options.home,
            kept=cast("keys.Kept | None", kept),
            deep=deep,
            conversations_dir=home_options.conversations,
        )
    present({"done": "rotated"}, "rotated", as_json=as_json)


def _passphrase(file: Path | None, *, confirm: bool = False) -> str:
    if file is not None:
        return _read(file).split("\n", 1)[0].rstrip("\r")
    if not sys.stdin.isatty():
        raise InvalidInput("--passphrase-file", None, "is required without a terminal")
    # A variable, since typer.prompt is not typed.
    phrase: str = typer.prompt("passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    return phrase


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError("read", path, str(error)) from error
