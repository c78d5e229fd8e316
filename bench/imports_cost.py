"""What starting costs: `import anaphora`, and a whole `anaphora conversation recall` process.

Figures in milliseconds and seconds, each the median of several fresh processes, run in turns with a
bare interpreter so that both see the same machine.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.figures import Figure, below
from bench.measuring import plain_environment

ROUNDS = 11
SHOTS = 7


def run() -> list[Figure]:
    """`import anaphora` and `from anaphora import Memory`, less what a bare interpreter takes."""
    bare, package, facade = [], [], []
    for _ in range(ROUNDS):
        bare.append(_seconds("pass"))
        package.append(_seconds("import anaphora"))
        facade.append(_seconds("from anaphora import Memory"))
    start = statistics.median(bare)
    return [
        Figure("bare interpreter", 1000 * start, "ms"),
        below("import anaphora", 1000 * (statistics.median(package) - start), 150, "ms"),
        below("from anaphora import Memory", 1000 * (statistics.median(facade) - start), 150, "ms"),
    ]


def one_shot(home: Path, question: str, turns: int) -> Figure:
    """The whole process of one recall on the command line, from start to exit, over `home`."""
    arguments = ["--home", str(home), "conversation", "recall", question, "--json"]
    code = (
        f"import sys; sys.argv[1:] = {arguments!r}; from anaphora.surfaces.cli import main; main()"
    )
    spent = [_seconds(code) for _ in range(SHOTS)]
    return below(
        f"one recall by the command line, {turns:,} turns", statistics.median(spent), 1.5, "s"
    )


def _seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, env=plain_environment()
    )
    return time.perf_counter() - began
