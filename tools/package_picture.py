"""Makes the package in docs/project.md: what recall says about this very repository.

In: this repository's `src` and `docs`, and two decisions about it, the second replacing the first.
Out: the text of the package for `FOCUS`, on the terminal, and between the marks in docs/project.md.
Run it as `python -m tools.package_picture` when it should be newer; the clock stands still, so that
the same files give the same text.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from anaphora import Memory
from anaphora.recall.context.package import render_package
from anaphora.values.projects import RecallPackage

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "project.md"
FOCUS = "why is the cap of the exact scan (EXACT_CAP) what it is, and where is it applied?"
BUDGET = 1200
BEGIN, END = "<!-- package -->\n", "<!-- end of package -->"

BEFORE = (
    "EXACT_CAP (src/anaphora/core/config.py) is 100,000 vectors: an exact scan of more takes too "
    "long, so LanceDB holds what is beyond."
)
NOW = (
    "EXACT_CAP (src/anaphora/core/config.py) is 150,000 vectors now: since "
    "src/anaphora/index/vectors/scan.py reads 8-bit vectors first, an exact scan of 100,000 is "
    "faster than LanceDB."
)
_DAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def main() -> None:
    """Print the package, and put it into the page."""
    text = render_package(package())
    print(text)
    if PAGE.exists():
        page = PAGE.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        tail = rest.split(END)[1]
        PAGE.write_text(f"{head}{BEGIN}```text\n{text}\n```\n{END}{tail}", encoding="utf-8")


def package(focus: str = FOCUS, budget: int = BUDGET) -> RecallPackage:
    """Index the repository into a home of its own, take the notes, recall."""
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="anaphora-package-") as folder:
        place = Path(folder) / "anaphora"
        for part in ("src", "docs"):
            shutil.copytree(ROOT / part, place / part, ignore=_left_out)
        for one in place.rglob("*"):
            os.utime(one, (_DAY.timestamp(), _DAY.timestamp()))
        with Memory.open(Path(folder) / "home", clock=clock) as memory:
            memory.index_project(place)
            memory.ready()
            old = memory.observe(BEFORE, kind="decision", importance=4, project="anaphora")
            clock.now += timedelta(days=30)
            memory.observe(
                NOW, kind="decision", importance=5, project="anaphora", supersedes=old.id
            )
            return memory.recall_context(focus, project="anaphora", budget=budget)


class _Clock:
    """A time that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = _DAY

    def __call__(self) -> datetime:
        return self.now


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Compiled files, and the page that holds the package itself."""
    return {name for name in names if name in {"__pycache__", PAGE.name}}


if __name__ == "__main__":
    main()
