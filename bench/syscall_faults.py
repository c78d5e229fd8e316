"""What survives a fault at every system call: kills, errors, short writes, losses of power.

    python -m bench.syscall_faults [--each N] [--points N] [--works NAME …] [--faults NAME …]

Each thing that a user can do (tests/durability/work.py) is done again and again on a small home,
and each time the operating system fails at another of its calls: `--each` of them for each kind of
fault, 0 for every one (hours). Then every call is a moment at which the power may fail: `--points`
of them (0: all), and for each the images that a disk may hold of what was not synced. Out: counts,
of which the last of each line must be nought, also in bench/results/syscall_faults.json and .md.
Linux alone (tests/durability/faults.py); nothing has to be installed, no right is needed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.durability import work
from tests.durability.campaign import FAULTS, Campaign, Tally, chosen
from tests.durability.faults import Zygote

from bench.figures import Figure, exactly, keep

EACH = 8
POINTS = 24
SEED = 22


def run(
    data: Path | None = None,
    *,
    each: int = EACH,
    points: int = POINTS,
    works: Sequence[str] = tuple(work.WORKS),
    faults: Sequence[str] = tuple(FAULTS),
    seed: int = SEED,
) -> list[Figure]:
    """All works under all faults; `data` is not needed. Prints and keeps the figures."""
    del data
    began = time.monotonic()
    by_fault = {what: Tally() for what in faults}
    cuts: dict[str, Tally] = {}
    sites = 0
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder,
        Zygote(Path(work.__file__)) as zygote,
    ):
        campaign = Campaign(Path(folder), zygote)
        for name in works:
            chance = random.Random(f"{seed} {name}")
            for what in faults:
                count = campaign.calls(name, FAULTS[what])
                sites += count
                for at in chosen(count, each, chance):
                    by_fault[what].add(_told(campaign.strike(name, what, at)))
            cuts[name] = _told(campaign.crash(name, chance, points))
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    figures = [Figure("kinds of work", len(works)), Figure("calls that can fail", sites)]
    for what, tally in by_fault.items():
        figures += _of_fault(what, tally)
    for name, tally in cuts.items():
        figures.append(Figure(f"images after a power cut: {name}", tally.images))
        figures.append(exactly(f"images with something lost or in part: {name}", _bad(tally), 0))
    keep("syscall_faults", "Durability: a fault at any system call", figures)
    return figures


def _told(tally: Tally) -> Tally:
    for flaw in tally.flaws:
        print(f"  {flaw}")
    return tally


def _of_fault(what: str, tally: Tally) -> list[Figure]:
    return [
        Figure(f"{what}: runs", tally.runs),
        Figure(f"{what}: done all the same", tally.survived),
        Figure(f"{what}: refused by an error of ours", tally.refused),
        Figure(f"{what}: of these, kept though refused", tally.kept),
        Figure(f"{what}: ended by a kill", tally.killed),
        exactly(f"{what}: lost, in part, not ours, or not done by a retry", _bad(tally), 0),
    ]


def _bad(tally: Tally) -> int:
    return len(tally.flaws)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=EACH)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--works", nargs="+", choices=work.WORKS, default=tuple(work.WORKS))
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=tuple(FAULTS))
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    run(
        each=given.each,
        points=given.points,
        works=given.works,
        faults=given.faults,
        seed=given.seed,
    )


if __name__ == "__main__":
    main()
