"""A how-to page of a framework, run where the framework is."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import blocks
from tests.docs.running import ROOT, Shown, World


def run_page(name: str, folder: Path) -> list[str]:
    """Run every block of a page in its order; what it shows that was not printed."""
    text = (ROOT / "docs" / "how-to" / name).read_text("utf-8")
    work = folder / "work"
    work.mkdir()
    shown: list[Shown] = []
    with World(work).entered() as world:
        for block in blocks(text):
            shown += world.run(block, 0)
    return [one.trouble for one in shown if one.trouble]
