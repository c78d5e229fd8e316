"""What several measurements need: sizes on disk, memory, an environment without settings."""

from __future__ import annotations

import os
from pathlib import Path


def size_of(folder: Path, pattern: str = "**/*") -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file())


def memory_of(line: str, process: int | str = "self") -> float:
    """MB by a line of the kernel's (VmRSS, VmHWM); 0 where it does not tell."""
    place = Path(f"/proc/{process}/status")
    lines = place.read_text(encoding="utf-8").splitlines() if place.is_file() else []
    return next((int(one.split()[1]) / 1000 for one in lines if one.startswith(line)), 0.0)


def plain_environment() -> dict[str, str]:
    """The environment without the developer's own settings, which are not to be measured."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("ANAPHORA_", "NEO_"))}
