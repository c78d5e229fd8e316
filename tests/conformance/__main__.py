"""Print the table; the exit code says whether anything differs that should not."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.conformance.desk import Desk
from tests.conformance.rows import SEEDS
from tests.conformance.table import Outcome, Row, print_table, run


def tried(row: Row) -> Outcome:
    """The outcome of one row, tried in a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="anaphora-conformance-") as folder:
        desk = Desk(Path(folder))
        try:
            return run(row, desk)
        finally:
            desk.close()


if __name__ == "__main__":
    asked = sys.argv[1:]
    seeds = [seed for seed in SEEDS if not asked or seed.number in asked]
    outcomes = [tried(row) for seed in seeds for row in seed.rows]
    print(print_table(seeds, outcomes))
    sys.exit(any(outcome.verdict == "differs" for outcome in outcomes))
