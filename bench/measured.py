"""When, where and at which commit each result was measured: bench/results/measured.json.

`bench.figures.write` records every measurement here, with a digest of what it wrote, so that a
result that was changed by hand is noticed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["Measurement", "measurements", "record", "stale"]

ROOT = Path(__file__).resolve().parents[1]
_FILE = Path("bench", "results", "measured.json")


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
    rows = {known: asdict(row) for known, row in measurements(root).items()}
    rows[name] = asdict(Measurement(today, commit(root), machine, digest(root, name)))
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
