"""Changes to the files of a client: planned, shown, made, undone.

In: entries. Out: `Change` values with the bytes before and after. A file is replaced whole, after
it was made sure that nobody wrote it meanwhile; the bytes from before are kept beside it until the
change is undone, so that undoing gives them back exactly where nobody else wrote since.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anaphora.errors import InvalidInput
from anaphora.store.disk import (
    NO_FILE,
    FileChanged,
    Identity,
    identity_of,
    make_directory,
    replace_file,
    translate,
)
from anaphora.surfaces.setup import documents
from anaphora.surfaces.setup.clients import Entry

BACKUP = ".before-anaphora"
"""What the name of the copy from before ends in."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file: its bytes now (None: it is not there) and its bytes then (None: it goes).

    `refused` says why a file is left as it is, and `by_hand` what then belongs in it (or, where a
    setup is undone, comes out of it).
    """

    path: Path
    before: bytes | None
    after: bytes | None
    undoes: bool = False
    refused: str = ""
    by_hand: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the file is as it should be."""
        return self.before == self.after

    def shown(self) -> str:
        """The change as a unified diff; "" where there is none."""
        if self.nothing:
            return ""
        before, after = (
            (side or b"").decode("utf-8-sig", "replace").splitlines()
            for side in (self.before, self.after)
        )
        lines = difflib.unified_diff(
            before,
            after,
            fromfile=str(self.path) if self.before is not None else "/dev/null",
            tofile=str(self.path) if self.after is not None else "/dev/null",
            lineterm="",
        )
        return "\n".join(lines)

    def make(self) -> None:
        """Do it. `InvalidInput` for a refused one, or when somebody wrote the file meanwhile;
        `StoreError` otherwise."""
        if self.refused:
            raise InvalidInput(str(self.path), None, self.refused)
        if self.nothing:
            return
        backup = _backup(self.path)
        try:
            # A file of settings that is a link into somebody's dotfiles stays one.
            real = self.path.resolve()
            make_directory(real.parent)
            seen = _identity(real)
            if _content(real) != self.before:
                raise FileChanged
            if self.before is not None and not self.undoes and not backup.exists():
                _write(backup, NO_FILE, self.before)
            if self.after is None:
                real.unlink()
            else:
                _write(real, seen, self.after)
            if self.undoes:
                backup.unlink(missing_ok=True)
        except FileChanged as error:
            raise InvalidInput(
                str(self.path), None, "it was written meanwhile; try again"
            ) from error
        except OSError as error:
            raise translate(error, "write", self.path) from error


def plan(entries: Iterable[Entry]) -> tuple[Change, ...]:
    """What putting the entries in would change, one change a file. One refused stops no other."""
    return tuple(_planned(path, mine) for path, mine in _by_file(entries).items())


def plan_undo(entries: Sequence[Entry]) -> tuple[Change, ...]:
    """What taking the entries out would change, in the files that are there."""
    found = (_planned_undo(path, mine) for path, mine in _by_file(entries).items())
    return tuple(change for change in found if change.before is not None)


def _by_file(entries: Iterable[Entry]) -> dict[Path, list[Entry]]:
    found: dict[Path, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.path, []).append(entry)
    return found


def _planned(path: Path, mine: Sequence[Entry]) -> Change:
    before = _content(path)
    after = before or b""
    try:
        for entry in mine:
            after = documents.put(entry, after)
    except InvalidInput as error:
        by_hand = documents.snippet(mine)
        return Change(path, before, before, refused=error.reason, by_hand=by_hand)
    return Change(path, before, after)


def _planned_undo(path: Path, mine: Sequence[Entry]) -> Change:
    before = _content(path)
    after = before or b""
    try:
        for entry in mine:
            after = documents.take(entry, after)
        left = _as_it_was(path, mine, after)
    except InvalidInput as error:
        by_hand = documents.snippet(mine)
        return Change(path, before, before, True, refused=error.reason, by_hand=by_hand)
    return Change(path, before, left, undoes=True)


def _as_it_was(path: Path, entries: Sequence[Entry], after: bytes) -> bytes | None:
    """The very bytes from before, where what is left says the same; no file where none was."""
    form = entries[0].form
    left = documents.read(form, path, after)
    backup = _content(_backup(path))
    if backup is None:
        return after if left else None
    # What was there, as it is after putting in and taking out: empty places go with the entry.
    round_trip = backup
    for change in (documents.put, documents.take):
        for entry in entries:
            round_trip = change(entry, round_trip)
    return backup if documents.read(form, path, round_trip) == left else after


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise translate(error, "read", path) from error


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _identity(path: Path) -> Identity:
    return identity_of(path.stat()) if path.exists() else NO_FILE


def _write(path: Path, seen: Identity, content: bytes) -> None:
    replace_file(path, "anaphora", seen, lambda file: _all_of(file, content))


def _all_of(file: BinaryIO, content: bytes) -> None:
    file.write(content)
