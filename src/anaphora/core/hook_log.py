"""What went wrong in hooks, for `doctor`: a client must not see it, and somebody should.

It lies in the user's state folder, not in a home: a home that is gone or full cannot hold it. Lines
are JSON objects, the last ones of a bounded file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

MOST: Final = 200_000
"""Bytes of the log; of a longer one the older half is dropped."""

_REASON: Final = 500


def log_path(environ: Mapping[str, str]) -> Path:
    """Where the log lies."""
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA", "").strip()
        return Path(base or tempfile.gettempdir()) / "anaphora" / "hooks.jsonl"
    state = environ.get("XDG_STATE_HOME", "").strip()
    home = environ.get("HOME", "").strip()
    base = state or (f"{home}/.local/state" if home else tempfile.gettempdir())
    return Path(base) / "anaphora" / "hooks.jsonl"


def report_failure(environ: Mapping[str, str], error: BaseException, **told: str) -> None:
    """Add what went wrong. Whatever keeps it from being written, nothing is raised."""
    reason = f"{type(error).__name__}: {error}".splitlines()[0][:_REASON]
    entry = {"at": time.time(), **told, "error": reason}
    with suppress(OSError):
        place = log_path(environ)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = json.dumps(entry).encode() + b"\n"
        with place.open("ab") as file:
            file.write(line)
            size = file.tell()
        if size > MOST:
            _shorten(place)


def failures(environ: Mapping[str, str], since: float) -> list[dict[str, Any]]:
    """What went wrong after a time (seconds since 1970), oldest first."""
    return [entry for entry in _entries(log_path(environ)) if entry["at"] >= since]


def _entries(place: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = place.read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("at"), int | float):
                yield entry


def _shorten(place: Path) -> None:
    kept = place.read_bytes()[-MOST // 2 :].partition(b"\n")[2]
    fresh = place.with_suffix(f".{os.getpid()}.new")
    fresh.write_bytes(kept)
    fresh.replace(place)
