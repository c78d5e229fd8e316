"""`python -m tools.claims`: write the claims' values into the pages, and docs/claims.md.

`--check` changes nothing and lists what does not agree; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tools.claims.checking import problems, renewed
from tools.claims.commands import ROOT
from tools.claims.prose import pages
from tools.claims.registry import REGISTRY


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.claims", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing, list what is wrong")
    if not parser.parse_args(words).check:
        for page in pages(ROOT):
            text = renewed(ROOT, page, REGISTRY)
            if text != page.text:
                (ROOT / page.name).write_text(text, "utf-8")
    lines = problems(ROOT, REGISTRY)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
