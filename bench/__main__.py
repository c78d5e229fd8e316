"""`python -m bench --data DIR [--only NAME …]`: the measurements, also in bench/results/.

With `--strict` the exit code is 1 when a figure misses its target; without it a busy machine is no
failure. bench/README.md explains each measurement.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

MEASUREMENTS = (
    "quality",
    "changes",
    "silence",
    "injection",
    "projects",
    "deep_aggregation",
    "speed",
    "hooks",
    "server",
    "durability",
    "memory_faults",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    chosen = parser.parse_args(arguments)
    missed = [
        f"{name}: {figure.name}"
        for name in chosen.only
        for figure in importlib.import_module(f"bench.{name}").run(chosen.data)
        if figure.met is False
    ]
    for line in missed:
        print(f"missed its target: {line}")
    return 1 if missed and chosen.strict else 0


if __name__ == "__main__":
    sys.exit(main())
