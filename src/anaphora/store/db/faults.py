"""The one place where errors of databases become errors of Anaphora.

It recognises them by the codes that they carry, so that this module imports no database library;
it never swallows one.
"""

from __future__ import annotations

import os
from pathlib import Path

from anaphora.errors import AnaphoraError, DiskFull, Locked, ReadOnly, StoreError
from anaphora.store.disk import translate
from anaphora.system.lock_holders import lock_holder
from anaphora.system.shortages import find_shortage

BUSY_SECONDS = 30
"""How long a writer waits for another one before it gives up."""
IDLE_SECONDS = 60
"""How long a server's database lets a write say nothing before it is undone: of a machine that has
lost its power the database hears nothing, and the locks of its last write would stay for hours."""

# Class 53 is "insufficient resources"; 42501 is a role without the right to write.
_PG_NO_ROOM = "53100"
_PG_NO_WRITE = {"25006", "42501"}
_PG_BUSY = "55P03"
# A transaction that could not be put in order with another one, or a deadlock: undone, to be done
# again.
_PG_IN_THE_WAY = {"40001", "40P01"}
_SQLITE_WORDS = {
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_NOTADB": "it is not a database, or it is damaged",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_IOERR": "the disk failed to read or write",
}
_DAMAGED = {"SQLITE_CORRUPT", "SQLITE_NOTADB"}
"""What SQLite never says only because this process may open no more files."""


def explain(error: BaseException, operation: str, place: Path | str) -> AnaphoraError:
    """The error of ours that `error` means, for `operation` on `place`.

    An `AnaphoraError` that SQLAlchemy wrapped (a value that a column type refused) comes back as
    it was.
    """
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, AnaphoraError):
        return cause
    if isinstance(cause, OSError):
        return translate(cause, operation, place)
    name = getattr(cause, "sqlite_errorname", None)
    if isinstance(name, str):
        # Extended names begin with the plain one: SQLITE_IOERR_WRITE, SQLITE_READONLY_DIRECTORY.
        plain = "_".join(name.split("_")[:2])
        if plain == "SQLITE_FULL" or (plain == "SQLITE_IOERR" and _no_room_left(place)):
            return DiskFull(operation, place, "no room is left")
        if plain in {"SQLITE_READONLY", "SQLITE_PERM"}:
            return ReadOnly(operation, place, _words(cause))
        if plain in {"SQLITE_BUSY", "SQLITE_LOCKED"}:
            return Locked(operation, place, lock_holder(Path(f"{place}-shm"), Path(place)))
        return StoreError(operation, place, _reason(plain, _words(cause)))
    state = getattr(cause, "sqlstate", None)
    if state == _PG_NO_ROOM:
        return DiskFull(operation, place, _words(cause))
    if state in _PG_NO_WRITE:
        return ReadOnly(operation, place, _words(cause))
    if state == _PG_BUSY or state in _PG_IN_THE_WAY:
        return Locked(operation, place)
    return StoreError(operation, place, _reason("", _words(cause)))


def _reason(name: str, message: str) -> str:
    shortage = "" if name in _DAMAGED else find_shortage()
    meaning = _SQLITE_WORDS.get(name)
    return shortage or (f"{meaning} ({message})" if meaning else message)


def was_in_the_way(error: AnaphoraError) -> bool:
    """Whether a server undid the transaction only because of another one at the same moment."""
    cause = getattr(error.__cause__, "orig", None)
    return getattr(cause, "sqlstate", None) in _PG_IN_THE_WAY


def _no_room_left(place: Path | str) -> bool:
    """Whether the file system of `place` is full: SQLite reports a full one as IOERR, too."""
    if not hasattr(os, "statvfs"):
        return False
    try:
        # One page of the write-ahead log's shared index takes 32 KiB.
        figures = os.statvfs(Path(place).parent)
    except OSError:
        return False
    return figures.f_bavail * figures.f_frsize < 64 * 1024


def _words(cause: BaseException) -> str:
    return " ".join(str(cause).split()) or type(cause).__name__
