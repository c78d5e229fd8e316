"""Programs on this machine: where they may be started from, and which libraries they need.

In: a program's path. Out: paths. It starts nothing but the system's own loader and a script of two
lines, and leaves nothing behind.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

PATIENCE = 10.0


def put(place: Path, content: bytes) -> None:
    """Written aside and renamed: another thread never runs half a script, or one still open."""
    handle, aside = tempfile.mkstemp(dir=place.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(aside).chmod(0o700)
    Path(aside).replace(place)


@lru_cache(maxsize=1)
def place_for_programs() -> str:
    """A folder for temporary files from which programs may be started: not all are."""
    usual = tempfile.gettempdir()
    for place in (usual, "/dev/shm", "/var/tmp"):  # noqa: S108 - only a private folder in it is used
        if _starts_programs(place):
            return place
    return usual


def _starts_programs(place: str) -> bool:
    try:
        with tempfile.TemporaryDirectory(prefix="anaphora-wall-", dir=place) as folder:
            script = Path(folder) / "trial"
            put(script, b"#!/bin/sh\nexit 0\n")
            done = subprocess.run(  # noqa: S603 - the line above
                [script], capture_output=True, check=False, env={}, timeout=PATIENCE
            )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


@lru_cache(maxsize=16)
def libraries(program: Path) -> tuple[Path, ...]:
    """The loader and the shared libraries of a program; none for a static one."""
    loader = _loader(program)
    if loader is None:
        return ()
    done = subprocess.run(  # noqa: S603 - fixed programs, no shell, nothing of a user
        [loader, "--list", program], capture_output=True, check=True, env={}, timeout=PATIENCE
    )
    words = done.stdout.decode().split()
    found = {Path(word) for word in words if word.startswith("/")}
    return tuple(sorted(found | {Path(loader)}))


def _loader(program: Path) -> str | None:
    """The program interpreter that an ELF file names (System V ABI, chapter 5)."""
    with program.open("rb") as file:
        head = file.read(64)
        if head[:4] != b"\x7fELF" or head[4] != 2:
            raise ValueError(f"{program.name} is not a 64-bit ELF program")
        order = "<" if head[5] == 1 else ">"
        (offset,) = struct.unpack_from(order + "Q", head, 32)
        size, count = struct.unpack_from(order + "HH", head, 54)
        for number in range(count):
            file.seek(offset + number * size)
            entry = file.read(size)
            kind, _flags, where, _virtual, _physical, length = struct.unpack_from(
                order + "IIQQQQ", entry
            )
            if kind == 3:
                file.seek(where)
                return file.read(length).rstrip(b"\0").decode()
    return None
