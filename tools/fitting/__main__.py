"""Runs the fits: `python -m tools.fitting --data FOLDER [--only STEP,…] [--embedder FOLDER]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

if TYPE_CHECKING:
    from tools.fitting.outcome import Outcome

ROOT: Final = Path(__file__).parents[2]
# In their order; what each is stands in the package's docstring.
NAMES: Final = (
    "calibration",
    "turns",
    "memories",
    "links",
    "holding",
    "silence",
    "silence read",
    "crowd",
    "confidence",
    "unasked",
)
HEAD: Final = ("| step | what | before | after |", "|---|---|---:|---:|")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps one after the other, each in a process of its own; print the table."""
    given = _read(argv)
    if given.step:
        _run_step(given)
        return 0
    rows: list[str] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="anaphora-fitting-") as folder:
        for name in given.only:
            report = Path(folder) / f"{name}.md"
            print(f"-- {name}", flush=True)
            done = subprocess.run(
                _command(given, name, report), cwd=ROOT, env=_environment(given), check=False
            )
            if done.returncode:
                # What comes after would be fitted on constants that do not belong together.
                failed = done.returncode
                rows.append(f"| {name} | failed | | |")
                break
            rows += report.read_text("utf-8").splitlines()
    print("\n".join((*HEAD, *rows)))
    return failed


def _read(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.fitting", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--only", type=_steps, default=NAMES, help=f"of {', '.join(NAMES)}")
    parser.add_argument("--embedder", default="minilm", help="a folder in the bundled one's place")
    parser.add_argument("--homes", type=Path, default=ROOT / ".models" / "fitting")
    parser.add_argument("--show", action="store_true", help="write nothing")
    parser.add_argument("--stories", type=int, help="of each author of the corpus, for a try")
    parser.add_argument("--step", choices=NAMES, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if Path(given.embedder).is_dir():
        given.embedder = f"{Path(given.embedder).resolve()}"
    return given


def _steps(written: str) -> tuple[str, ...]:
    wanted = written.split(",")
    for one in wanted:
        if one not in NAMES:
            raise argparse.ArgumentTypeError(f"{one} is none of {', '.join(NAMES)}")
    return tuple(name for name in NAMES if name in wanted)


def _command(given: argparse.Namespace, name: str, report: Path) -> list[str]:
    command = [sys.executable, "-m", "tools.fitting", "--step", name, "--report", str(report)]
    command += ["--data", str(given.data.resolve()), "--homes", str(given.homes.resolve())]
    command += ["--embedder", given.embedder, *(["--show"] if given.show else [])]
    return command + (["--stories", str(given.stories)] if given.stories else [])


def _environment(given: argparse.Namespace) -> dict[str, str]:
    """What `bench` opens a memory with has the embedder of the environment."""
    return {**os.environ, "ANAPHORA_EMBEDDER": given.embedder}


def _run_step(given: argparse.Namespace) -> None:
    from tools.fitting.constants import write
    from tools.fitting.outcome import table
    from tools.fitting.steps import STEPS, Given

    from anaphora.embed import calibration

    asked = Given(given.data, given.homes, given.embedder, given.stories)
    model = asked.model()
    asked = Given(given.data, given.homes / _folder(model.name), given.embedder, given.stories)
    # The embedder is taken for the bundled one: its cosines stay as they are.
    with mock.patch.object(calibration, "MINILM", calibration.measure_mean_cosines(model)):
        outcome: Outcome = STEPS[given.step](asked)
    rows = table(outcome, given.step)
    if not given.show:
        write(outcome.found)
    given.report.write_text("\n".join(rows), "utf-8")


def _folder(name: str) -> str:
    """A folder for what one embedder made: names differ with the model and its recipe."""
    return "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in name)


if __name__ == "__main__":
    sys.exit(main())
