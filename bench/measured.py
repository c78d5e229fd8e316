"""When, where and at which commit each result was measured: bench/results/measured.json.

`bench.figures.write` records every measurement here, with a digest of what it wrote, so that a
result that was changed by hand is noticed. `python -m bench.measured` takes date and commit from
the history for results that have no record, and says so in the record.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Measurement", "from_history", "measurements", "record", "stale"]

ROOT = Path(__file__).resolve().parents[1]
_FILE = Path("bench", "results", "measured.json")
# As `bench.figures.machine` names it.
_MACHINE = re.compile(r"[^\n|:]*?\d+ cores, \w+, Python \d+(?:\.\d+)+(?:, load \d+\.\d)?")
UNRECORDED = "two shared cores (the run did not record more)"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement. `dated` says where the date and the commit are from: "run", or "history" for
    those from before runs recorded it, which have the commit that brought the result in."""

    date: str
    commit: str
    machine: str
    digest: str
    dated: str = "run"


def measurements(root: Path = ROOT) -> Mapping[str, Measurement]:
    """All that is recorded, by the name of the result."""
    file = root / _FILE
    if not file.is_file():
        return {}
    rows = json.loads(file.read_text("utf-8"))
    return {name: Measurement(**row) for name, row in rows.items()}


def record(name: str, machine: str, root: Path = ROOT) -> None:
    """Keep that a result has just been measured by the code of this checkout."""
    today = datetime.now(UTC).date().isoformat()
    keep(name, Measurement(today, commit(root), machine, digest(root, name)), root)


def keep(name: str, measurement: Measurement, root: Path = ROOT) -> None:
    """Write one entry, the others as they are."""
    rows = {known: asdict(row) for known, row in measurements(root).items()}
    rows[name] = asdict(measurement)
    text = json.dumps(dict(sorted(rows.items())), indent=1, ensure_ascii=False)
    (root / _FILE).write_text(text + "\n", encoding="utf-8")


def stale(root: Path, name: str) -> bool:
    """Whether a result is not what its measurement wrote."""
    return measurements(root)[name].digest != digest(root, name)


def digest(root: Path, name: str) -> str:
    """A digest of both files of a result."""
    made = hashlib.sha256()
    for ending in ("json", "md"):
        file = root / "bench" / "results" / f"{name}.{ending}"
        made.update(file.read_text("utf-8").encode() if file.is_file() else b"")
    return made.hexdigest()[:16]


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, with "-dirty" where files differ from it; "" outside of one."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=8"]
    try:
        answer = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


def from_history(root: Path = ROOT) -> list[str]:
    """Record the results that lack a record, or changed since, by the commit that has them."""
    known = measurements(root)
    folder = root / "bench" / "results"
    names = sorted(
        file.stem
        for file in folder.glob("*.json")
        if file.name != _FILE.name
        and (file.stem not in known or known[file.stem].digest != digest(root, file.stem))
    )
    for name in names:
        file = folder / f"{name}.json"
        shown = ["git", "log", "-1", "--format=%cs %h", "--abbrev=8", "--", str(file)]
        asked = subprocess.run(shown, cwd=root, capture_output=True, text=True, check=True)
        date, _, brought_in = asked.stdout.strip().partition(" ")
        if not brought_in:
            raise LookupError(f"{file.name} is in no commit: run its measurement")
        text = (folder / f"{name}.md").read_text("utf-8")
        machine = machine_in[0].strip() if (machine_in := _MACHINE.search(text)) else UNRECORDED
        keep(name, Measurement(date, brought_in, machine, digest(root, name), "history"), root)
    return names


if __name__ == "__main__":
    print("\n".join(from_history()))
