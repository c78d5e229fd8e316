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


def processor_time(process: int) -> int:
    """Ticks of the processor that a process has used; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def user_environment(root: Path) -> dict[str, str]:
    """The environment of a new user whose home, state and runtime folder are below `root`."""
    for name in ("user", "run", "state"):
        (root / name).mkdir(mode=0o700)
    return {
        **plain_environment(),
        "ANAPHORA_HOME": str(root / "home"),
        "HOME": str(root / "user"),
        "XDG_RUNTIME_DIR": str(root / "run"),
        "XDG_STATE_HOME": str(root / "state"),
    }


def plain_environment() -> dict[str, str]:
    """The environment without the developer's own settings, which are not to be measured.

    Where Python writes no bytecode, every start compiles the whole program.
    """
    own = ("ANAPHORA_", "NEO_", "PYTHONDONTWRITEBYTECODE")
    return {name: text for name, text in os.environ.items() if not name.startswith(own)}
