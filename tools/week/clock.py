"""The time of the week, for every process that is started in it: a library that moves the clock."""

from __future__ import annotations

import struct
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("clock.c")


class MovedClock:
    """Builds the library in `folder`, with the system's C compiler, and sets its time.

    `OSError` or `subprocess.CalledProcessError` where there is no compiler.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        library = folder / "clock.so"
        self._file.write_bytes(struct.pack("q", 0))
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE)], check=True
        )
        self.variables = {"LD_PRELOAD": str(library), "WEEK_CLOCK": str(self._file)}
        """What the processes need in their environment."""

    def set(self, now: datetime) -> None:
        """Let it be `now` for all of these processes; their time runs on from there."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", round(now.timestamp() - time.time())))
