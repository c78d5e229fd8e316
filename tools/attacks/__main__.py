"""Run the attacks: one line each, then how many were tried, held and open.

`python -m tools.attacks [FINDING ...]`; the exit code is 1 when one of severity high or medium is
open. Each runs in a process of its own, with a limit of time, so that none takes the others down.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import tools.attacks as package

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300


def load_attacks() -> list[package.Attack]:
    """Every attack of every module here, by the name of its finding."""
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return sorted(package.ATTACKS, key=lambda attack: (_number(attack.finding), attack.holds))


def main() -> int:
    """Run those that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.attacks", description=__doc__)
    parser.add_argument("findings", nargs="*", help="names of findings; all without")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    attacks = load_attacks()
    if options.one is not None:
        with tempfile.TemporaryDirectory(prefix="anaphora-attack-") as folder:
            attacks[options.one].run(Path(folder))
        return 0
    chosen = [
        n for n, a in enumerate(attacks) if not options.findings or a.finding in options.findings
    ]
    outcomes: Counter[tuple[str, bool]] = Counter()
    for number in chosen:
        attack, began = attacks[number], time.monotonic()
        problem = try_attack(number)
        outcomes[attack.severity, not problem] += 1
        verdict = "open" if problem else "held"
        print(f"{verdict}  {attack.finding:4} {attack.severity:6} {attack.holds}", end=" ")
        print(f"({time.monotonic() - began:.1f} s){': ' + problem if problem else ''}", flush=True)
    still_open = {severity: outcomes[severity, False] for severity in ("high", "medium", "low")}
    held = sum(count for (_, holds), count in outcomes.items() if holds)
    listed = ", ".join(f"{count} {severity}" for severity, count in still_open.items())
    print(f"{len(chosen)} tried, {held} held, open: {listed}")
    return 1 if still_open["high"] or still_open["medium"] else 0


def try_attack(number: int) -> str:
    """What an attack achieved, in one line; "" where it was held."""
    words = [sys.executable, "-m", package.__name__, "--one", str(number)]
    try:
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS} s"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1] if lines else f"exit {done.returncode}")


def _number(finding: str) -> tuple[str, int]:
    digits = "".join(character for character in finding if character.isdigit())
    return finding.rstrip("0123456789"), int(digits or 0)


if __name__ == "__main__":
    sys.exit(main())
