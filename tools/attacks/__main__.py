"""Run the attacks: one line each, then how many were tried, held and open.

`python -m tools.attacks [FINDING ...]`; the exit code is 1 when one of severity high or medium is
open, or a finding has neither an attack nor a test. `--table` tries none and shows them for each
finding. Each attack runs in a process of its own, with a limit of time, so that none takes the
others down; `--jobs` at once, but for those that measure time.
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
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tools.attacks as package
from tools.attacks.findings import FINDINGS, HELD_BY_TESTS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
JOBS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attack: what it achieved in one line ("" where it was held), and its time."""

    attack: package.Attack
    problem: str
    seconds: float

    def line(self) -> str:
        """How it is told."""
        verdict, attack = "open" if self.problem else "held", self.attack
        told = f"{verdict}  {attack.finding:4} {attack.severity:6} {attack.holds}"
        return f"{told} ({self.seconds:.1f} s)" + (f": {self.problem}" if self.problem else "")


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
    parser.add_argument("--table", action="store_true", help="show the attacks of each finding")
    parser.add_argument("--jobs", type=int, default=JOBS, help="how many run at once")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    attacks = load_attacks()
    if options.one is not None:
        with tempfile.TemporaryDirectory(prefix="anaphora-attack-") as folder:
            attacks[options.one].run(Path(folder))
        return 0
    missing = findings_without_attack(attacks)
    if options.table:
        print("\n".join(finding_table(attacks)))
        return 1 if missing else 0
    named = options.findings
    chosen = [n for n, a in enumerate(attacks) if not named or a.finding in named]
    outcomes = []
    for outcome in try_all(attacks, chosen, options.jobs):
        print(outcome.line(), flush=True)
        outcomes.append(outcome)
    still_open = Counter(one.attack.severity for one in outcomes if one.problem)
    held = sum(not one.problem for one in outcomes)
    listed = ", ".join(f"{still_open[name]} {name}" for name in ("high", "medium", "low"))
    print(f"{len(chosen)} tried, {held} held, open: {listed}")
    print(
        f"{len(FINDINGS)} findings, {len(missing)} without an attack {' '.join(missing)}".rstrip()
    )
    return 1 if still_open["high"] or still_open["medium"] or missing else 0


def findings_without_attack(attacks: Iterable[package.Attack]) -> list[str]:
    """The findings that no attack and no test stands for. ValueError for one that is not listed."""
    tried = HELD_BY_TESTS.keys() | {attack.finding for attack in attacks}
    if unknown := tried - FINDINGS.keys():
        raise ValueError(f"not in findings.py: {', '.join(sorted(unknown))}")
    return [name for name in FINDINGS if name not in tried]


def finding_table(attacks: Sequence[package.Attack]) -> Iterator[str]:
    """Each finding, and below it what its attacks say must hold, and its tests."""
    for name, says in FINDINGS.items():
        yield f"{name:4} {says}"
        held = [attack.holds for attack in attacks if attack.finding == name]
        held += [f"tests/{test}" for test in HELD_BY_TESTS.get(name, ())]
        yield from (f"       {holds}" for holds in held or ["NO ATTACK"])


def try_all(
    attacks: Sequence[package.Attack], chosen: Sequence[int], jobs: int
) -> Iterator[Outcome]:
    """Try attacks, several at once, those that measure time one by one behind the others."""

    def outcome_of(number: int) -> Outcome:
        began = time.monotonic()
        problem = try_attack(number)
        return Outcome(attacks[number], problem, time.monotonic() - began)

    together = [number for number in chosen if attacks[number].pace != "timed"]
    with ThreadPoolExecutor(jobs) as pool:
        first = sorted(together, key=lambda number: attacks[number].pace != "long")
        begun = {number: pool.submit(outcome_of, number) for number in first}
        for number in together:
            yield begun[number].result()
    yield from (outcome_of(number) for number in chosen if number not in begun)


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
