"""Whether the promises held when all tests ran last: tests/last_run.json.

`python -m tools.claims --ran REPORT.xml` makes it from what `pytest --junitxml REPORT.xml` wrote.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.figures import machine
from bench.measured import commit
from tools.claims.commands import cited_tests, promises

__all__ = ["LastRun", "last_run", "outcomes", "record_run"]

_FILE = Path("tests", "last_run.json")
_WORST = ("failed", "passed", "skipped", "not run")


@dataclass(frozen=True, slots=True)
class LastRun:
    """A run of all tests, and how each promise came out: "failed" if a test of it did, "passed" if
    one passed and none failed, "skipped" if all were, "not run" if there was none."""

    date: str
    commit: str
    machine: str
    promises: Mapping[str, str]


def last_run(root: Path) -> LastRun | None:
    """What is recorded; None where no run is."""
    file = root / _FILE
    return LastRun(**json.loads(file.read_text("utf-8"))) if file.is_file() else None


def record_run(report: Path, root: Path) -> LastRun:
    """Keep the outcome of each promise in a report of pytest."""
    tests = outcomes(report)
    held = {name: _outcome(cited_tests().get(name, ()), tests) for name in promises()}
    today = datetime.now(UTC).date().isoformat()
    run = LastRun(today, commit(root), machine(), held)
    (root / _FILE).write_text(json.dumps(asdict(run), indent=1) + "\n", "utf-8")
    return run


def outcomes(report: Path) -> dict[str, set[str]]:
    """The outcomes of each test and each file of tests in a report, all parameters together."""
    tests: dict[str, set[str]] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        outcome = "skipped" if "skipped" in kinds and outcome == "passed" else outcome
        file, inner = _file_of(case.get("classname", ""))
        name = "::".join((file, *inner, case.get("name", "").partition("[")[0]))
        for key in (name, file):
            tests.setdefault(key, set()).add(outcome)
    return tests


def _outcome(names: Iterable[str], tests: Mapping[str, set[str]]) -> str:
    seen = {outcome for name in names for outcome in tests.get(name, {"not run"})}
    return next((outcome for outcome in _WORST if outcome in seen), "not run")


def _file_of(dotted: str) -> tuple[str, list[str]]:
    parts = dotted.split(".")
    last = next((at for at, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    return "/".join(parts[: last + 1]) + ".py", parts[last + 1 :]
