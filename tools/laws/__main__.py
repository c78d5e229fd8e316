"""Try the laws of order on generated homes.

`python -m tools.laws --homes 500 --seed 1 [--law NAME] [--lane memories|turns] [--read 32]` prints
for each law how many cases were tried and in how many it did not hold, then the first of those in
full. The exit code is 1 where any law did not hold. Interrupted, it prints what it has found so
far.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress

from tools.laws.asking import Asker
from tools.laws.generating import make_home
from tools.laws.homes import LANES
from tools.laws.running import names_of_laws, try_homes
from tools.laws.trial import LAWS, Tally

SHOWN = 3
"""Violations of each law in full."""


def main() -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tools.laws", description=__doc__)
    parser.add_argument("--homes", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--law", action="append", default=[], help="; ".join(names_of_laws()))
    parser.add_argument("--lane", choices=LANES)
    parser.add_argument("--read", type=int, default=0, help="hits that a reader reads")
    options = parser.parse_args()
    began, tally = time.monotonic(), Tally()
    homes = (make_home(number, options.seed) for number in range(options.homes))
    lanes = (options.lane,) if options.lane else LANES
    # What was found stands also where the run is interrupted.
    with suppress(KeyboardInterrupt):
        try_homes(
            homes,
            options.seed,
            tally=tally,
            asker=Asker(read=options.read),
            laws=options.law,
            lanes=lanes,
            on_home=lambda number: _progress(number + 1, tally),
        )
    print_tally(tally)
    print(f"{options.homes} homes, seed {options.seed}, {time.monotonic() - began:.0f} s")
    return 1 if tally.broken else 0


def _progress(tried: int, tally: Tally) -> None:
    if sys.stderr.isatty() or tried % 50 == 0:
        broken = sum(tally.broken.values())
        print(f"{tried} homes, {broken} violations", file=sys.stderr, flush=True)


def print_tally(tally: Tally) -> None:
    """A line for each law, then violations in full."""
    for law in LAWS:
        names = [name for name in law.names if tally.tried[name]]
        if names:
            print(law.holds)
        for name in names:
            print(f"  {name:28} {tally.tried[name]:6} tried  {tally.broken[name]:6} broken")
    others = {name: n for name, n in tally.tried.items() if name not in names_of_laws()}
    for name, count in sorted(others.items()):
        print(f"  {name:28} {count:6}")
    for name, violations in tally.violations.items():
        for violation in violations[:SHOWN]:
            print(f"\n--- {name}")
            print("\n".join(violation.lines()))


if __name__ == "__main__":
    sys.exit(main())
