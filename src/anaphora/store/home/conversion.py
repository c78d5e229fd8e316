"""A whole home from one form into another: clear, encrypted, other keys.

The marker says what is under way before anything changes; the next opening after a crash
finishes it. The database changes in one transaction; a thread's old file goes only when its new one
was read back and compared. Other processes that have the home open are refused from the first
moment on (`Guard`). It never leaves an index of the old form behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from anaphora.calls.progress import Progress, no_progress
from anaphora.errors import EncryptionError, InvalidInput, StoreError
from anaphora.settings import EMBEDDERS_FILE, SETTINGS_FILE
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.key_stores import KEY_FILE
from anaphora.store.crypto.marker import MARKER, Kept, Marker
from anaphora.store.home.convert_rows import convert_rows
from anaphora.store.home.convert_threads import FolderConversion
from anaphora.store.home.master_key import (
    load_keys,
    load_next_keys,
    marker_of,
    new_marker,
    put_marker,
    rotate_master_key,
    wrap_next,
)
from anaphora.store.home.sealing import Home, Sealing, clear_sealing, sealing_of
from anaphora.store.threads.files import CORRUPT, LOCKS_FOLDER
from anaphora.store.threads.forms import SEALED_SUFFIX
from anaphora.values.conversations import ThreadProblem

_LOCKS: Final = ("sealing.lock", "anaphora.db.lock", LOCKS_FOLDER)
_DATABASE: Final = ("anaphora.db", "anaphora.db-wal", "anaphora.db-shm", "anaphora.db-journal")
_OURS: Final = frozenset(
    (MARKER, KEY_FILE, SETTINGS_FILE, EMBEDDERS_FILE, "index", "namespaces", *_LOCKS, *_DATABASE)
)


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion did. `problems` are files that could not be opened; they were kept.

    `left_in_clear` are files and folders in a home that is sealed now which are not ours.
    """

    rows: int = 0
    threads: int = 0
    problems: tuple[ThreadProblem, ...] = ()
    left_in_clear: tuple[str, ...] = ()


def encrypt(home: Home, kept: Kept = "keychain", progress: Progress | None = None) -> Converted:
    """Seal a clear home, its key in the keychain or in a file of the home.

    `InvalidInput` for a sealed one, and where the database is not a file. `NoKeyringError` before
    anything was changed. What the disk itself keeps of overwritten blocks is beyond reach.
    """
    with home.locked():
        marker = markers.read(home.root)
        if marker is not None:
            if marker.state == "encrypting":
                return _run(home, marker, progress)
            raise InvalidInput("home", str(home.root), "it is already encrypted")
        _refuse_server(home)
        # Before anything is changed: it would leave the conversion stuck half-way.
        for _, folder in home.folders():
            if folder.exists() and not folder.is_dir():
                raise StoreError("convert", folder, "it is not a directory")
        marker = new_marker(home, kept, "encrypting", _draw_number(home))
        markers.write(home.root, marker)
        return _run(home, marker, progress)


def decrypt(home: Home, progress: Progress | None = None) -> Converted:
    """Open a sealed home up; its key is dropped at the end. `InvalidInput` for a clear one."""
    return _convert(home, "decrypting", progress)


def rotate_keys(home: Home, *, kept: Kept | None = None) -> None:
    """Give the home a new master key and a new data key, and encrypt everything again."""
    marker = markers.read(home.root)
    # Where it was interrupted after the master key had been changed, only the rest is left to do.
    if marker is None or marker.state != "rekeying":
        rotate_master_key(home, kept=kept)
    rekey(home)


def rekey(home: Home, progress: Progress | None = None) -> Converted:
    """Encrypt everything in a sealed home again, under a new data key."""
    return _convert(home, "rekeying", progress)


def finish_conversion(home: Home) -> None:
    """Finish a conversion that was interrupted."""
    with home.locked():
        marker = markers.read(home.root)
        if marker is not None and marker.state != "sealed":
            _run(home, marker, None)


def _convert(home: Home, state: markers.State, progress: Progress | None) -> Converted:
    with home.locked():
        marker = marker_of(home)
        if marker.state == state:
            return _run(home, marker, progress)
        if marker.state != "sealed":
            reason = "another encryption or decryption is unfinished: open the home first"
            raise InvalidInput("home", marker.state, reason)
        _refuse_server(home)
        keys = load_keys(home, marker)
        if state == "rekeying":
            marker = wrap_next(home, marker)
        marker = replace(marker, state=state, conversion=_draw_number(home))
        return _run(home, put_marker(home, marker, keys), progress)


def _run(home: Home, marker: Marker, progress: Progress | None) -> Converted:
    """Do what the marker says, from wherever it stopped. The caller holds the home's lock."""
    tell = progress or no_progress
    source, target = _sides(home, marker)
    try:
        rows = convert_rows(home.truth, source.rows, target.rows, marker.conversion, tell)
    except EncryptionError:
        # A row that does not open never will: nothing has changed yet, so the home stays as it was.
        if source.keys is None:
            markers.remove(home.root)
            home.key_store(marker.kept).drop(marker.key_name)
        else:
            previous_marker = replace(marker, state="sealed", conversion=0, next="", next_check="")
            put_marker(home, previous_marker, source.keys)
        raise
    threads, problems = 0, list[ThreadProblem]()
    for name, folder in home.folders():
        folder_conversion = FolderConversion(
            folder, source.threads_in(name), target.threads_in(name)
        )
        folder_conversion.run(tell)
        threads += folder_conversion.threads
        problems += folder_conversion.problems
    home.forget_index()
    _finish(home, marker, target)
    foreign = left_in_clear(home) if target.sealed else ()
    return Converted(rows, threads, tuple(problems), foreign)


def _sides(home: Home, marker: Marker) -> tuple[Sealing, Sealing]:
    keys = load_keys(home, marker)
    present = sealing_of(home, keys, guarded=False)
    clear = clear_sealing(home, guarded=False)
    if marker.state == "encrypting":
        return clear, present
    if marker.state == "decrypting":
        return present, clear
    return present, sealing_of(home, load_next_keys(home, marker), guarded=False)


def _finish(home: Home, marker: Marker, target: Sealing) -> None:
    if target.keys is None:
        markers.remove(home.root)
        # Last: until the marker is gone, the key is what opens the home.
        home.key_store(marker.kept).drop(marker.key_name)
        return
    finished_marker = replace(marker, state="sealed", conversion=0)
    if marker.state == "rekeying":
        finished_marker = replace(
            finished_marker, wrapped=marker.next, check=marker.next_check, next="", next_check=""
        )
    put_marker(home, finished_marker, target.keys)


def _refuse_server(home: Home) -> None:
    if not isinstance(home.truth, Path):
        reason = (
            "only a home with a SQLite database can be converted: "
            "create a new encrypted home instead"
        )
        raise InvalidInput("database", "a server", reason)


def _draw_number(home: Home) -> int:
    """A number that no earlier conversion of this home has left in the file."""
    return 1 + int.from_bytes(home.random(4), "big") % (2**31 - 2)


def left_in_clear(home: Home) -> tuple[str, ...]:
    """What is not ours, by path, in order; a folder stands for all that is in it."""
    return tuple(sorted(map(str, _foreign_paths(home))))


def _foreign_paths(home: Home) -> Iterator[Path]:
    threads = [folder for _, folder in home.folders()]
    yield from (p for p in _entries(home.root) if p.name not in _OURS and p not in threads)
    yield from (path for path in _entries(home.root / "namespaces") if not path.is_dir())
    for folder in threads:
        for path in _entries(folder):
            if path.name not in (LOCKS_FOLDER, CORRUPT) and not path.name.endswith(SEALED_SUFFIX):
                yield path
        # What was set aside has a number behind its name.
        yield from (p for p in _entries(folder / CORRUPT) if not p.stem.endswith(SEALED_SUFFIX))
        if folder != home.conversations:
            yield from (path for path in _entries(folder.parent) if path != folder)


def _entries(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return list(folder.iterdir())
    return []
