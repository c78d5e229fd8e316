"""Finds files to import or restore in their usual folders, so that no path needs to be typed.

Only the beginnings of files in the download folder are read. Nothing is imported without asking.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import typer

from anaphora.container.feature import load, registered
from anaphora.errors import InvalidInput
from anaphora.settings import ClientFolders, client_folders
from anaphora.surfaces.cli.output import console, styled
from anaphora.surfaces.cli.progress import READ, long_work
from anaphora.text.display import one_line
from anaphora.text.shown_times import shown_minute

_NOTHING: Final = {
    "import": "nothing was found in the download folder or the folders of coding agents; run "
    "`anaphora import FILE` with the file's name, or drag it onto the page of `anaphora start`",
    "restore": "no backup was found in your own folder or the download folder; run `anaphora "
    "restore FILE` with the file's name",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """A file or folder that can be imported, and its kind."""

    path: Path
    what: str


def find_offers(folders: ClientFolders | None = None) -> list[Offer]:
    """Importable files in this user's usual folders: agents' transcripts first, downloads last."""
    home_folders = client_folders() if folders is None else folders
    with long_work("Looking for exports", kept=READ):
        return [
            Offer(path, kind)
            for feature in registered()
            if feature.cli.offers
            for path, kind in load(feature.cli.offers)(home_folders)
        ]


def find_backups(folders: ClientFolders | None = None) -> list[Offer]:
    """The backups in this user's usual folders, newest first."""
    home_folders = client_folders() if folders is None else folders
    folders_of_user = (home_folders.user, download_folder(home_folders))
    paths = (path for folder in folders_of_user for path in folder.glob("*.backup"))
    return [
        Offer(path, f"backup of {shown_minute(datetime.fromtimestamp(time, UTC))}")
        for time, path in newest_first(paths)
    ]


def choose_offers(offers: Sequence[Offer], verb: str = "import") -> list[Path]:
    """The paths that the user chooses by number. `verb` is "import" or "restore".

    Raises `InvalidInput` if there are no offers, or no terminal to ask on.
    """
    if not offers:
        raise InvalidInput("path", None, _NOTHING[verb])
    terminal = console(stderr=True)
    for number, offer in enumerate(offers, 1):
        terminal.print(styled(f"{number:>3}  {offer.what}: {one_line(str(offer.path), None)}"))
    if not sys.stdin.isatty():
        reason = f"there is no terminal to ask on: run `anaphora {verb}` with one of these paths"
        raise InvalidInput("path", None, reason)
    question, usual = "Restore which? A number, or none", "1"
    if verb == "import":
        question, usual = "Import which? Numbers such as 1 3, all, or none", "all"
    answer = str(typer.prompt(question, usual, err=True))
    words = answer.replace(",", " ").lower().split()
    if words in (["all"], ["a"]):
        return [offer.path for offer in offers]
    if words in (["none"], ["n"], ["no"], []):
        raise typer.Exit(0)
    numbers = [int(word) if word.isdecimal() else 0 for word in words]
    if not all(1 <= number <= len(offers) for number in numbers):
        raise InvalidInput("number", answer, f"expected numbers from 1 to {len(offers)}, or all")
    return [offers[number - 1].path for number in dict.fromkeys(numbers)]


def newest_first(paths: Iterable[Path]) -> list[tuple[float, Path]]:
    """Files with their modification time; unreadable ones are skipped."""
    dated_paths: list[tuple[float, Path]] = []
    for path in paths:
        with suppress(OSError):
            if path.is_file():
                dated_paths.append((path.stat().st_mtime, path))
    return sorted(dated_paths, reverse=True)


def download_folder(at: ClientFolders) -> Path:
    """The user's download folder, which Linux desktops name in the user's language."""
    with suppress(OSError, UnicodeError):
        for line in (at.user / ".config" / "user-dirs.dirs").read_text("utf-8").splitlines():
            name, _, folder = line.partition("=")
            if name.strip() == "XDG_DOWNLOAD_DIR":
                return Path(folder.strip().strip('"').replace("$HOME", str(at.user)))
    return at.user / "Downloads"
