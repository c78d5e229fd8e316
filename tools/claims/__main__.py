"""`python -m tools.claims`: write the claims' values into the pages, and docs/claims.md.

`--check` changes nothing and lists what does not agree; the exit code is then 1. `--ran REPORT`
keeps what a run of all tests says about the promises first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.claims.checking import problems, renewed
from tools.claims.commands import ROOT
from tools.claims.document import DOCUMENT, document
from tools.claims.held import record_run
from tools.claims.model import ClaimError
from tools.claims.prose import pages
from tools.claims.registry import REGISTRY


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.claims", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, list what is wrong")
    parser.add_argument("--ran", type=Path, help="what `pytest --junitxml REPORT` wrote")
    chosen = parser.parse_args(words)
    if chosen.ran is not None:
        record_run(chosen.ran, ROOT)
    try:
        lines = _checked() if chosen.check else _written()
    except ClaimError as error:
        lines = [str(error)]
    for line in lines:
        print(line)
    return 1 if lines else 0


def _written() -> list[str]:
    for page in pages(ROOT):
        text = renewed(ROOT, page, REGISTRY)
        if text != page.text:
            (ROOT / page.name).write_text(text, "utf-8")
    lines = problems(ROOT, REGISTRY)
    (ROOT / DOCUMENT).write_text(document(ROOT, REGISTRY), "utf-8")
    return lines


def _checked() -> list[str]:
    lines = problems(ROOT, REGISTRY)
    if (ROOT / DOCUMENT).read_text("utf-8") != document(ROOT, REGISTRY):
        lines.append(f"{DOCUMENT}: not what the claims give; `python -m tools.claims` writes it")
    return lines


if __name__ == "__main__":
    sys.exit(main())
