"""Which program holds the lock on a file, where the system tells it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

LOCKS: Final = Path("/proc/locks")
"""Linux lists all locks here, for every user."""


def lock_holder(*paths: Path) -> str:
    """Who may alone write one of these files, as "sqlite3 (process 4711)"; "" if unknown."""
    with suppress(OSError, ValueError):
        inodes = {str(path.stat().st_ino) for path in paths if path.exists()}
        for line in LOCKS.read_text("utf-8").splitlines():
            # 1: POSIX  ADVISORY  WRITE 4711 08:01:131 120 120
            _, kind, _, mode, process, file, *_ = line.split()
            # Who waits for one stands under it, with an arrow for a kind.
            if kind != "->" and mode == "WRITE" and file.rpartition(":")[2] in inodes:
                return _program(int(process))
    return ""


def _program(process: int) -> str:
    if process == os.getpid():
        return "another part of this program"
    name = Path(f"/proc/{process}/comm").read_text("utf-8").strip()
    words = Path(f"/proc/{process}/cmdline").read_text("utf-8").split("\0")
    # One of ours by its own name, not by that of its interpreter.
    is_ours = any(Path(word).name == "anaphora" for word in words[:5])
    return f"{'anaphora' if is_ours else name} (process {process})"
