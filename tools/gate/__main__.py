"""`python -m tools.gate`: build the wheel, install it, try every surface.

In: a source tree (`--source`, else this one), interpreters (`--python`, else this one). Out: one
line a check, by environment; the exit code is 1 when a check failed. `--release` adds what takes
longer: each extra alone, and the how-to pages in the environments that they name.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.gate.build import build_wheel
from tools.gate.environments import Wanted, all_extras, make_environment
from tools.gate.release import release_wanted, try_release
from tools.gate.report import Report
from tools.gate.surfaces.hooks import check_hooks
from tools.gate.surfaces.mcp import check_mcp
from tools.gate.surfaces.package import check_package
from tools.gate.surfaces.pages import check_page, extras_named
from tools.gate.surfaces.rest import check_server
from tools.gate.wheelhouse import NotFilled, wheelhouse_of

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = "README.md"
TUTORIAL: Final = "docs/tutorial.md"
_AT_ONCE: Final = 2
"""Environments that are tried at the same time."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What is tried: a wheel of a tree, with an interpreter, in a folder."""

    source: Path
    wheel: Path
    wheelhouse: Path
    folder: Path
    python: str
    release: bool = False
    only: tuple[str, ...] = ()


def main(words: Sequence[str] | None = None) -> int:
    """Build, install and check; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.gate", description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT, help="the tree whose wheel is tried")
    parser.add_argument("--python", action="append", help="an interpreter to install for")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheel goes")
    parser.add_argument("--only", action="append", help="an environment, such as readme")
    parser.add_argument("--release", action="store_true", help="also what takes longer")
    options = parser.parse_args(words)
    began = time.monotonic()
    source = options.source.resolve()
    wheel = build_wheel(source, options.out)
    print(f"built {wheel}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    failed = 0
    for python in options.python or [sys.executable]:
        try:
            wheelhouse = wheelhouse_of(source, python)
        except NotFilled as problem:
            print(problem)
            return 1
        with tempfile.TemporaryDirectory(prefix="anaphora-gate-") as folder:
            gate = Gate(
                source, wheel, wheelhouse, Path(folder), python, options.release,
                tuple(options.only or ()),
            )  # fmt: skip
            print(f"with {python}", flush=True)
            failed += sum(report.failed for report in run(gate))
    print(f"{failed} checks failed, {time.monotonic() - began:.0f} s in all")
    return 1 if failed else 0


def run(gate: Gate) -> Iterator[Report]:
    """Try each environment; its lines are printed when it is done."""
    wanted = environments(gate)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for report in pool.map(lambda one: try_environment(gate, one), wanted):
            print("\n".join(report.lines()), flush=True)
            yield report


def environments(gate: Gate) -> list[Wanted]:
    """All extras, the README's installation, the tutorial's where it is another one."""
    readme = extras_named((gate.source / README).read_text("utf-8")) or ()
    tutorial = extras_named((gate.source / TUTORIAL).read_text("utf-8")) or ()
    # The one that takes longest first.
    wanted = [Wanted("everything", all_extras(gate.source)), Wanted("readme", readme)]
    if set(tutorial) not in ({*readme}, set()):
        wanted.append(Wanted("tutorial", tutorial))
    wanted += release_wanted(gate.source) if gate.release else ()
    return [one for one in wanted if not gate.only or one.name in gate.only]


def try_environment(gate: Gate, wanted: Wanted) -> Report:
    """Make one environment and try its surfaces."""
    report = Report(wanted.name)
    with report.surface("install"), report.check(f"anaphora[{','.join(wanted.extras)}]"):
        environment = make_environment(
            wanted, gate.wheel, gate.wheelhouse, gate.folder, gate.python
        )
    if report.failed:
        return report
    with closing(environment):
        if wanted.name not in {"everything", "readme", "tutorial"}:
            try_release(environment, gate.source, report)
            return report
        if wanted.name != "tutorial":
            with report.surface("package"):
                check_package(environment, gate.source, report)
            with report.surface("mcp"):
                check_mcp(environment, report)
            with report.surface("hooks"):
                check_hooks(environment, report)
            check_server(environment, report)
        with report.surface("pages"):
            for page in pages_of(gate.source, wanted):
                check_page(environment, gate.source, page, report)
    return report


def pages_of(source: Path, wanted: Wanted) -> Iterator[str]:
    """The pages to run in an environment: those that name it."""
    if wanted.name == "readme":
        yield README
    named = extras_named((source / TUTORIAL).read_text("utf-8")) or ()
    if set(named) == set(wanted.extras):
        yield TUTORIAL


if __name__ == "__main__":
    sys.exit(main())
