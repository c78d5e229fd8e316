"""Unexpected errors: a bounded log in the user's state folder, which `doctor` reads.

Every surface reports here and answers with the id of the entry. An entry has the place and type of
an error, but nothing of its message, which can quote a memory, a token or a path. The log is
outside the home, which may be full or gone. This module imports little, since hooks wait for it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final

from anaphora.errors import FilterError, InvalidInput, StoreError

MOST: Final = 100_000
"""Bytes of the log, and of the previous one, which is replaced when this one is full."""
TRACEBACK: Final = "ANAPHORA_TRACEBACK"
STOPS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end a program or a generator on purpose."""

_FRAMES: Final = 12
_CAUSES: Final = 5
_ID_BYTES: Final = 3
_OPERATION: Final = 80
_PACKAGE: Final = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_MARK: Final = "__anaphora_incident__"
# Errors with messages that contain only our own words.
_OWN_WORDS: Final = frozenset(
    {"Closed", "EmbedderNotReady", "MissingExtra", "NoKeyringError", "NoModel", "NoResident"}
)
_CODE: Final = re.compile(r"[A-Za-z0-9_.]{1,60}")
_VERB: Final = re.compile(r"[a-z ]{1,20}")


@dataclass(frozen=True, slots=True)
class Incident:
    """One entry. `at` is in seconds since 1970.

    `error` is the type of the error, `causes` those behind it; `frames` are places in this package
    as "recall/memories.py:132 recall", the innermost last; `reason` is a code of the system or of
    the database. With a `note` the caller had its answer all the same. `logged` says whether the
    entry could be written.
    """

    id: str
    at: float
    surface: str
    operation: str
    error: str
    causes: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""
    version: str = ""
    logged: bool = True

    @property
    def place(self) -> str:
        """The innermost place in this package."""
        return self.frames[-1] if self.frames else ""

    @property
    def summary(self) -> str:
        """The error in one line."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.error}{reason}" + (f" at {self.place}" if self.place else "")

    @property
    def hint(self) -> str:
        """Where to find more."""
        if self.logged:
            return "`anaphora doctor` tells more."
        return f"The log could not be written: {self.summary}."


def program_version() -> str:
    """The version of this package, from the loaded module: submodules may not import it."""
    return str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", ""))


def describe(error: BaseException) -> str:
    """The type of an error and its code, without a word of its message."""
    reason = _reason(error)
    return type(error).__name__ + (f" ({reason})" if reason else "")


def new_id(draw: Callable[[int], bytes] = os.urandom) -> str:
    """A short random id of an incident or a request."""
    return draw(_ID_BYTES).hex()


def report(
    environ: Mapping[str, str],
    error: BaseException,
    *,
    surface: str,
    operation: str = "",
    note: str = "",
    incident_id: str = "",
    now: Callable[[], float] = time.time,
) -> Incident:
    """Log an error and return its entry; the same error again is the same incident.

    Never raises. `operation` is a name of ours: of a tool, a route, a command or an event. With the
    variable `ANAPHORA_TRACEBACK` set, the traceback goes to standard error.
    """
    earlier = getattr(error, _MARK, None)
    if isinstance(earlier, Incident):
        return earlier
    # The error and its causes; of a group the first error in it.
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < _CAUSES and cause not in chain:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
            continue
        chain.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    chain = chain or [error]
    incident = Incident(
        id=incident_id or new_id(),
        at=now(),
        surface=surface,
        operation=operation[:_OPERATION],
        error=type(chain[0]).__name__,
        causes=tuple(type(e).__name__ for e in chain[1:]),
        # Of the error itself, or else of the first cause with frames in this package.
        frames=next(filter(None, (_places(e.__traceback__) for e in (error, *chain))), ()),
        reason="; ".join(dict.fromkeys(filter(None, (*map(_reason, chain), _origin(error))))),
        note=note,
        version=program_version(),
    )
    try:
        _append(log_path(environ), incident)
    except OSError:
        incident = replace(incident, logged=False)
    with suppress(AttributeError, TypeError):
        setattr(error, _MARK, incident)
    if environ.get(TRACEBACK, "").strip():
        import traceback

        with suppress(Exception):
            traceback.print_exception(error, file=sys.stderr)
    return incident


def incidents(environ: Mapping[str, str], since: float = 0.0) -> list[Incident]:
    """The entries after a time (seconds since 1970), oldest first."""
    path = log_path(environ)
    entries = []
    for file in (_older(path), path):
        try:
            lines = file.read_bytes().splitlines()
        except OSError:
            continue
        for line in lines:
            # Lines that are cut off, or written by another version, are skipped.
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                stored_incident = json.loads(line)
                lists = {
                    name: tuple(map(str, stored_incident.get(name, ())))
                    for name in ("causes", "frames")
                }
                texts = ("id", "surface", "operation", "error", "reason", "note", "version")
                words = {name: str(stored_incident.get(name, "")) for name in texts}
                incident = Incident(at=float(stored_incident["at"]), **words, **lists)  # type: ignore[arg-type]
                if incident.at >= since:
                    entries.append(incident)
    return entries


def log_path(environ: Mapping[str, str]) -> Path:
    """The path of the log."""
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA", "").strip()
        return Path(base or tempfile.gettempdir()) / "anaphora" / "incidents.jsonl"
    state = environ.get("XDG_STATE_HOME", "").strip()
    home = environ.get("HOME", "").strip()
    base = state or (f"{home}/.local/state" if home else tempfile.gettempdir())
    return Path(base) / "anaphora" / "incidents.jsonl"


def _places(traceback: TracebackType | None) -> tuple[str, ...]:
    frames: deque[str] = deque(maxlen=_FRAMES)
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(_PACKAGE):
            name = code.co_filename[len(_PACKAGE) :].replace(os.sep, "/")
            frames.append(f"{name}:{traceback.tb_lineno} {code.co_name}")
        traceback = traceback.tb_next
    return tuple(frames)


def _reason(error: BaseException) -> str:
    """A code for the reason that quotes nothing: an errno, a missing module, a database's code."""
    if isinstance(error, ImportError) and isinstance(error.name, str):
        return f"no module {error.name}" if _CODE.fullmatch(error.name) else ""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    for name in ("sqlite_errorname", "sqlstate"):
        code = getattr(error, name, None)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code
    if type(error).__name__ in _OWN_WORDS and error.__cause__ is None:
        return str(error)
    if isinstance(error, InvalidInput) and not isinstance(error, FilterError):
        # The name of an argument or a variable; not what was given.
        return error.what if _CODE.fullmatch(error.what) else ""
    if isinstance(error, StoreError):
        return f"cannot {error.operation}" if _VERB.fullmatch(error.operation) else ""
    return ""


def _origin(error: BaseException) -> str:
    """The library that raised it, if it was raised outside of this package."""
    traceback, frame = error.__traceback__, None
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    if frame is None or frame.f_code.co_filename.startswith(_PACKAGE):
        return ""
    name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return f"raised in {name}" if _CODE.fullmatch(name) else ""


def _append(path: Path, incident: Incident) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    values = asdict(incident)
    del values["logged"]
    line = json.dumps(values).encode() + b"\n"
    # One write at the end of the file: several processes log at once.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
        file_status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    # The entry is written by now, so a failure to rename the log is ignored.
    with suppress(OSError):
        # Renamed, not rewritten: entries that another process adds meanwhile are in one of the two
        # files. If another process has renamed it already, the file at this path is a new one.
        if file_status.st_size > MOST and path.stat().st_ino == file_status.st_ino:
            path.replace(_older(path))


def _older(path: Path) -> Path:
    return path.with_name("incidents.1.jsonl")
