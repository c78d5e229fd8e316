"""A whole home from one form into another: clear, sealed, other keys, a newer form of rows.

In: a `Home`. Out: the same home in the other form. The marker says what is under way before
anything changes; whoever opens the home after a crash finishes it. Truth changes in one
transaction; a thread's old file goes only when its new one was read back and compared. Other
processes that have the home open are refused from the first moment on (`Guard`). It never leaves
an index of the old form behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anaphora.core.progress import Progress
from anaphora.errors import EncryptionError, InvalidInput, StoreError
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.columns import Sealer
from anaphora.store.crypto.convert_threads import convert_folder
from anaphora.store.crypto.home import (
    Home,
    Kept,
    Sealing,
    clear_sealing,
    load,
    load_next,
    new_marker,
    open_home,
    sealing_of,
    wrap_next,
)
from anaphora.store.crypto.left import left_in_clear
from anaphora.store.crypto.marker import Marker
from anaphora.store.crypto.plans import PLANS, Plan
from anaphora.store.crypto.renewing import renew
from anaphora.store.escaping import escape, unescape
from anaphora.values.conversations import ThreadProblem

_BATCH = 500


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

    `InvalidInput` for a sealed one, and where truth is not a file. `NoKeyringError` before
    anything was changed. What the disk itself keeps of overwritten blocks is beyond reach.
    """
    with home.locked():
        marker = markers.read(home.root)
        if marker is not None:
            if marker.state == "encrypting":
                return _run(home, marker, progress)
            raise InvalidInput("home", str(home.root), "it is sealed already")
        _refuse_server(home)
        _check_threads_open(home)
        marker = new_marker(home, kept, "encrypting", _number(home))
        markers.write(home.root, marker)
        return _run(home, marker, progress)


def decrypt(home: Home, progress: Progress | None = None) -> Converted:
    """Open a sealed home up; its key is dropped at the end. `InvalidInput` for a clear one."""
    return _convert(home, "decrypting", progress)


def rekey(home: Home, progress: Progress | None = None) -> Converted:
    """Encrypt everything in a sealed home again, under a new data key."""
    return _convert(home, "rekeying", progress)


def resume(home: Home) -> Sealing:
    """Finish a conversion that was interrupted, seal older rows anew, and open the home."""
    with home.locked():
        marker = markers.read(home.root)
        if marker is not None and marker.state != "sealed":
            _run(home, marker, None)
            marker = markers.read(home.root)
        if marker is not None and marker.older:
            keys = load(home, marker)
            # The newer version is said at once: an older program must not write here meanwhile.
            marker = replace(
                marker, state="renewing", version=markers.FORMAT, conversion=_number(home)
            )
            marker = markers.signed(marker, keys.of("marker"))
            markers.write(home.root, marker)
            _run(home, marker, None)
    return open_home(home)


def _convert(home: Home, state: markers.State, progress: Progress | None) -> Converted:
    with home.locked():
        marker = markers.read(home.root)
        if marker is None:
            raise InvalidInput("home", str(home.root), "it is not sealed")
        if marker.state == state:
            return _run(home, marker, progress)
        if marker.state != "sealed":
            reason = "another conversion is unfinished: open the home first"
            raise InvalidInput("home", marker.state, reason)
        _refuse_server(home)
        keys = load(home, marker)
        if state == "rekeying":
            marker = wrap_next(home, marker)
        marker = replace(marker, state=state, conversion=_number(home))
        marker = markers.signed(marker, keys.of("marker"))
        markers.write(home.root, marker)
        return _run(home, marker, progress)


def _run(home: Home, marker: Marker, progress: Progress | None) -> Converted:
    """Do what the marker says, from wherever it stopped. The caller holds the home's lock."""
    tell = progress or _nobody
    source, target = _sides(home, marker)
    if marker.state == "renewing":
        rows = renew(home.truth, source.rows, target.rows, tell)
        _finish(home, marker, target)
        return Converted(rows)
    try:
        rows = _convert_truth(home.truth, source.rows, target.rows, marker.conversion, tell)
    except EncryptionError:
        # A row that does not open never will: nothing has changed yet, so the home stays as it was.
        _undo(home, marker, source)
        raise
    threads, problems = 0, list[ThreadProblem]()
    for name, folder in home.folders():
        done = convert_folder(folder, source.threads_in(name), target.threads_in(name), tell)
        threads += done.threads
        problems += done.problems
    home.forget_index()
    _finish(home, marker, target)
    left = left_in_clear(home) if target.sealed else ()
    return Converted(rows, threads, tuple(problems), left)


def _sides(home: Home, marker: Marker) -> tuple[Sealing, Sealing]:
    keys = load(home, marker)
    present = sealing_of(home, keys, guarded=False, older=marker.older)
    clear = clear_sealing(home, guarded=False)
    if marker.state == "encrypting":
        return clear, present
    if marker.state == "decrypting":
        return present, clear
    if marker.state == "renewing":
        return present, sealing_of(home, keys, guarded=False)
    return present, sealing_of(home, load_next(home, marker), guarded=False)


def _undo(home: Home, marker: Marker, source: Sealing) -> None:
    if source.keys is None:
        markers.remove(home.root)
        home.keeper(marker.kept).drop(marker.key_name)
        return
    back = replace(marker, state="sealed", conversion=0, next="", next_check="")
    markers.write(home.root, markers.signed(back, source.keys.of("marker")))


def _finish(home: Home, marker: Marker, target: Sealing) -> None:
    if target.keys is None:
        markers.remove(home.root)
        # Last: until the marker is gone, the key is what opens the home.
        home.keeper(marker.kept).drop(marker.key_name)
        return
    done = replace(marker, state="sealed", conversion=0)
    if marker.state == "rekeying":
        done = replace(done, wrapped=marker.next, check=marker.next_check, next="", next_check="")
    markers.write(home.root, markers.signed(done, target.keys.of("marker")))


def _convert_truth(
    place: Path | str, source: Sealer, target: Sealer, number: int, tell: Progress
) -> int:
    """Every row, in one transaction which also notes the conversion's number in the file."""
    if not isinstance(place, Path) or not place.exists():
        return 0
    from anaphora.store.db import sqlite
    from anaphora.store.db.engine import open_database
    from anaphora.store.db.faults import explain

    truth = open_database(place)
    try:
        truth.ensure()
    finally:
        truth.close()
    connection = sqlite.connect(place)
    try:
        connection.execute("BEGIN IMMEDIATE")
        done = 0
        # `user_version` is a number in the file that belongs to nobody, and it commits with rows.
        if connection.execute("PRAGMA user_version").fetchone()[0] != number:
            for table, plan in PLANS.items():
                if plan.sealed or plan.lookup:
                    done += _convert_table(connection, (table, plan), source, target, tell)
            connection.execute(f"PRAGMA user_version = {number:d}")
        connection.execute("COMMIT")
        # Free pages and the journal still have what stood there before.
        connection.execute("VACUUM")
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    except sqlite.Error as error:
        raise explain(error, "convert", place) from error
    finally:
        connection.close()
    if busy:
        reason = "another process reads it all the time: close it, and open the home again"
        raise StoreError("convert", place, reason)
    return done


def _convert_table(
    connection: Any, table: tuple[str, Plan], source: Sealer, target: Sealer, tell: Progress
) -> int:
    name, plan = table
    columns = plan.columns
    changed = tuple(dict.fromkeys((*plan.sealed, *plan.lookup)))
    chosen = f"SELECT rowid, {', '.join(columns)} FROM {name}"  # noqa: S608 - our own names
    settings = ", ".join(f"{column} = ?" for column in changed)
    update = f"UPDATE {name} SET {settings} WHERE rowid = ?"  # noqa: S608
    total = connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]  # noqa: S608
    last, done = -1, 0
    while True:
        batch = f"{chosen} WHERE rowid > ? ORDER BY rowid LIMIT {_BATCH}"
        found = connection.execute(batch, (last,)).fetchall()
        if not found:
            return done
        clear = {row[0]: source.open_row(name, _row(columns, row)) for row in found}
        for rowid, row in clear.items():
            stored = target.seal_row(name, row)
            connection.execute(update, (*(_stored(stored[c]) for c in changed), rowid))
        again = connection.execute(f"{batch}", (last,)).fetchall()
        if {row[0]: target.open_row(name, _row(columns, row)) for row in again} != clear:
            raise StoreError("convert", name, "a row was not read back as it was written")
        last, done = found[-1][0], done + len(found)
        tell(name, done, total)


def _row(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    values = (unescape(value) if isinstance(value, str) else value for value in row[1:])
    return dict(zip(columns, values, strict=True))


def _stored(value: Any) -> Any:
    return escape(value) if isinstance(value, str) else value


def _refuse_server(home: Home) -> None:
    if not isinstance(home.truth, Path):
        reason = "only a home whose truth is a file can be converted; begin a sealed one instead"
        raise InvalidInput("database", "a server", reason)


def _check_threads_open(home: Home) -> None:
    """Refuse before anything is changed what would leave the conversion stuck half-way."""
    for _, folder in home.folders():
        if folder.exists() and not folder.is_dir():
            raise StoreError("convert", folder, "it is no directory")


def _number(home: Home) -> int:
    """A number that no earlier conversion of this home has left in the file."""
    return 1 + int.from_bytes(home.random(4), "big") % (2**31 - 2)


def _nobody(_label: str, _done: int, _total: int) -> None:
    pass
