"""What a measurement gives: figures, each beside its target, printed and written to bench/results/.

In: names, values, targets. Out: lines on the terminal, a JSON and a Markdown file a measurement.
It measures nothing itself.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.measured import ROOT, record

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. `target` is in words ("<= 2"), "" if there is none; `met` says whether
    the value keeps it, None without a target."""

    name: str
    value: float
    unit: str = ""
    target: str = ""
    met: bool | None = None


def at_most(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that must not exceed its limit."""
    return Figure(name, value, unit, f"<= {limit:g}", value <= limit)


def below(name: str, value: float, limit: float, unit: str) -> Figure:
    """A figure that must stay under its limit."""
    return Figure(name, value, unit, f"< {limit:g}", value < limit)


def at_least(name: str, value: float, limit: float, unit: str = "") -> Figure:
    """A figure that must reach its limit."""
    return Figure(name, value, unit, f">= {limit:g}", value >= limit)


def exactly(name: str, value: float, wanted: float, unit: str = "") -> Figure:
    """A figure that must be one number."""
    return Figure(name, value, unit, f"= {wanted:g}", value == wanted)


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def machine() -> str:
    """What it ran on, without names: processor, cores, system, Python, and how busy it was."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = models[0].split(":", 1)[1].strip() if models else processor
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}{busy}"
    )


def machine_and_day() -> str:
    """What it ran on, and when."""
    return f"{machine()}, {datetime.now(UTC).date().isoformat()}"


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print the figures, one a line, each beside its target."""
    print(f"\n{title}")
    for figure in figures:
        print("  " + "  ".join(_cells(figure)).rstrip())


def keep(name: str, title: str, figures: Sequence[Figure]) -> None:
    """Print the figures and write them to bench/results/NAME.json and NAME.md."""
    show(title, figures)
    value = {"title": title, "machine": machine(), "figures": [asdict(f) for f in figures]}
    write(name, json.dumps(value, indent=1), as_markdown(title, figures))


def as_markdown(title: str, figures: Sequence[Figure]) -> str:
    """The figures as a page: what it ran on, and a table."""
    rows = ["| " + " | ".join(cell.strip() for cell in _cells(f)) + " |" for f in figures]
    lines = [f"# {title}", "", machine(), "", "| what | value | target | |", "|---|---:|---:|---|"]
    return "\n".join(lines + rows)


def write(name: str, as_json: str, as_markdown: str, root: Path = ROOT) -> None:
    """The two files of a measurement; its date, commit and machine go into measured.json."""
    folder = root / "bench" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(as_json + "\n", encoding="utf-8")
    (folder / f"{name}.md").write_text(as_markdown.rstrip() + "\n", encoding="utf-8")
    record(name, machine(), root)


def run_alone(
    module: str, doc: str | None, run: Callable[..., object], *, homes: bool = False
) -> None:
    """`python -m bench.MODULE --data DIR`: run one measurement by the command line's arguments."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=(doc or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    if homes:
        parser.add_argument("--homes", type=Path, help="keep the homes here, to ask again")
    run(**vars(parser.parse_args()))


def _cells(figure: Figure) -> tuple[str, str, str, str]:
    value = f"{figure.value:,.3f}" if figure.value < 100 else f"{figure.value:,.0f}"
    if float(figure.value).is_integer():
        value = f"{figure.value:,.0f}"
    mark = "" if figure.met is None else "ok" if figure.met else "MISSED"
    target = f"{figure.target} {figure.unit}".strip() if figure.target else ""
    return (f"{figure.name:<58}", f"{value:>10} {figure.unit:<8}", f"{target:<12}", mark)
