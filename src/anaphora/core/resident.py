"""The way to the user's resident process: where it listens, how it is started, what is said to it.

One process of a user keeps the model and the homes open, so that a hook answers in milliseconds and
no two programs hold the model twice. Paths, times and keys are resolved in that process, so callers
whose variables differ in what decides them (`environment.caller_mark`) do not share one. It listens
on a Unix socket in a folder that only the user may enter, or on a named pipe with a key that only
the user may read. Nothing depends on it: whoever cannot reach it does the work alone. This module
imports little: a hook's client waits for it.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.environment import caller_mark, with_whole_paths

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

VARIABLE: Final = "ANAPHORA_RESIDENT"
DEFAULT_IDLE: Final = 20.0
"""Minutes after which a resident process that nobody asks ends."""

_POLL: Final = 0.01
_LONGEST_PATH: Final = 100
_OTHERS: Final = 0o077


class NoResident(Exception):
    """The resident process cannot be reached, or was left before it answered.

    A `hopeless` one is not worth waiting for: there is no place where one could listen.
    """

    def __init__(self, reason: str, *, hopeless: bool = False) -> None:
        self.hopeless = hopeless
        super().__init__(reason)


def idle_minutes(environ: Mapping[str, str]) -> float:
    """`ANAPHORA_RESIDENT` in minutes, 0 where none may be used; the default for no number."""
    try:
        return max(0.0, float(environ.get(VARIABLE, "").strip() or DEFAULT_IDLE))
    except ValueError:
        return DEFAULT_IDLE


def program_stamp() -> str:
    """What tells this program from another version of it, or from itself before an upgrade."""
    package = Path(__file__).resolve().parent.parent
    try:
        changed = (package / "__init__.py").stat().st_mtime_ns
    except OSError:
        changed = 0
    return f"{package}|{sys.prefix}|{changed}"


def address(environ: Mapping[str, str]) -> str:
    """Where the resident process of this environment and this installation listens. OSError."""
    import zlib

    package = Path(__file__).resolve().parent.parent
    parts = f"{package}|{sys.prefix}|{caller_mark(environ)}"
    key = f"{zlib.crc32(parts.encode(errors='surrogateescape')):08x}"
    if sys.platform == "win32":
        return rf"\\.\pipe\anaphora-{environ.get('USERNAME', 'user')}-{key}"
    place = str(runtime_folder(environ) / f"{key}.sock")
    if len(place) > _LONGEST_PATH:
        raise OSError(f"{place} is too long for a socket")
    return place


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the socket: the user's own, mode 700; made where it is not there. OSError."""
    base = environ.get("XDG_RUNTIME_DIR", "").strip()
    if sys.platform == "win32":
        folder = Path(environ.get("LOCALAPPDATA", "").strip() or Path.home()) / "anaphora"
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    folder = Path(base) / "anaphora" if base else Path(f"/tmp/anaphora-{os.getuid()}")  # noqa: S108
    folder.mkdir(mode=0o700, exist_ok=True)
    # Anybody may make a folder of that name in /tmp.
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise OSError(f"{folder} belongs to somebody else")
    if found.st_mode & _OTHERS:
        folder.chmod(0o700)
    return folder


def pipe_key(environ: Mapping[str, str]) -> bytes | None:
    """What both ends of a named pipe must know; None where the file system keeps others out."""
    if sys.platform == "win32":
        place = runtime_folder(environ) / "pipe.key"
        try:
            with place.open("xb") as file:
                file.write(os.urandom(32))
        except FileExistsError:
            pass
        return place.read_bytes()
    return None


def connect(environ: Mapping[str, str]) -> Connection:
    """A connection to the resident process. Raises `NoResident`."""
    if not idle_minutes(environ):
        raise NoResident(f"{VARIABLE} is 0", hopeless=True)
    try:
        place, key = address(environ), pipe_key(environ)
    except OSError as error:
        raise NoResident(str(error), hopeless=True) from error
    try:
        from multiprocessing.connection import Client

        return Client(place, authkey=key)
    except (OSError, ImportError, EOFError) as error:
        raise NoResident(str(error)) from error


def start_process(environ: Mapping[str, str]) -> None:
    """Start the resident process, if it may be; it outlives this one. Raises `NoResident`."""
    if not idle_minutes(environ):
        raise NoResident(f"{VARIABLE} is 0", hopeless=True)
    import subprocess

    flags: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = {"creationflags": 0x00000008 | 0x00000200}  # detached, a process group of its own
    try:
        subprocess.Popen(
            [sys.executable, "-m", "anaphora", "resident"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=str(Path(sys.prefix)),
            # It works in another folder.
            env=with_whole_paths(environ),
            close_fds=True,
            **flags,
        )
    except OSError as error:
        raise NoResident(str(error)) from error


def reach(environ: Mapping[str, str], patience: float, *, start: bool = True) -> Connection:
    """A connection to a resident process of this version; with `start` one is started if need be.

    Waits at most `patience` seconds for one that starts. Raises `NoResident`.
    """
    began, started = time.monotonic(), not start
    while True:
        try:
            connection = connect(environ)
            if is_current(connection, environ):
                return connection
            connection.close()
        except NoResident as error:
            if error.hopeless or not start or time.monotonic() - began > patience:
                raise
        if not started:
            start_process(environ)
            started = True
        if time.monotonic() - began > patience:
            raise NoResident("it is still starting")
        time.sleep(_POLL)


def is_current(connection: Connection, environ: Mapping[str, str]) -> bool:
    """Whether the other end is of this version and environment. Raises `NoResident`.

    One of another version makes room by ending.
    """
    hello = {"call": "hello", "stamp": program_stamp(), "caller": caller_mark(environ)}
    found = ask(connection, hello, 1.0)
    return found.get("ok") is True


def ask(connection: Connection, request: Mapping[str, Any], patience: float) -> dict[str, Any]:
    """Send a request and wait at most so many seconds for its answer. Raises `NoResident`."""
    try:
        connection.send_bytes(json.dumps(request).encode())
        if not connection.poll(patience):
            raise NoResident(f"no answer within {patience:g} s")
        found = json.loads(connection.recv_bytes())
    except (OSError, EOFError, ValueError) as error:
        raise NoResident(str(error) or type(error).__name__) from error
    return found if isinstance(found, dict) else {}
