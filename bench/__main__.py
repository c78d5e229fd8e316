"""`python -m bench --data DIR [--only NAME …]`: run the measurements, one after the other.

In: the folder of shared data. Out: figures on the terminal and in bench/results/. With `--strict`
the exit code is 1 when a figure misses its target; without it a busy machine is no failure.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.figures import Figure, keep

MEASUREMENTS = (
    "embedding",
    "append_cost",
    "durability",
    "speed",
    "quality",
    "remembering",
    "memory_speed",
    "memory_floor",
    "memory_faults",
    "syscall_faults",
    "single_adds",
    "sealed",
    "context_speed",
    "index_speed",
    "deep_overhead",
    "deep_aggregation",
    "mcp_start",
    "rest_load",
    "server_attacks",
)


def main() -> int:
    """Run what was asked for, and say at the end what missed its target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Anaphora.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    chosen = parser.parse_args()
    missed: list[str] = []
    for name in MEASUREMENTS:
        if name in chosen.only:
            missed += [f"{name}: {f.name}" for f in _run(name, chosen.data) if f.met is False]
    for line in missed:
        print(f"missed its target: {line}")
    return 1 if missed and chosen.strict else 0


def _run(name: str, data: Path) -> Sequence[Figure]:
    found = importlib.import_module(f"bench.{name}").run(data)
    if not isinstance(found, Mapping):
        return tuple(found)
    # A measurement without targets gives plain values by name.
    figures = [Figure(what, value) for what, value in found.items()]
    keep(name, name.replace("_", " ").capitalize(), figures)
    return figures


if __name__ == "__main__":
    sys.exit(main())
