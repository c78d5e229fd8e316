"""Print the table; the exit code says whether anything differs that should not."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.conformance.desk import Desk
from tests.conformance.rows import SEEDS
from tests.conformance.shared import Shared
from tests.conformance.table import Outcome, Row, print_table, run


def try_row(row: Row, shared: Shared) -> Outcome:
    """The outcome of one row, tried in a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="anaphora-conformance-") as folder:
        desk = Desk(Path(folder), shared)
        try:
            return run(row, desk)
        finally:
            desk.close()


def main(numbers: list[str]) -> int:
    """Print the table of these seeds, or of all; 1 if a row differs or is missing."""
    seeds = [seed for seed in SEEDS if not numbers or seed.number in numbers]
    with tempfile.TemporaryDirectory(prefix="anaphora-conformance-") as folder:
        shared = Shared(Path(folder))
        try:
            outcomes = [try_row(row, shared) for seed in seeds for row in seed.rows]
        finally:
            shared.close()
    print(print_table(seeds, outcomes))
    return int(any(outcome.verdict in ("differs", "missing") for outcome in outcomes))


if __name__ == "__main__":
    # No setting of the caller decides what a row sees.
    for name in [n for n in os.environ if n.startswith(("ANAPHORA_", "NEO_", "SOVSEAL_"))]:
        del os.environ[name]
    os.environ["ANAPHORA_RESIDENT"] = "0"
    sys.exit(main(sys.argv[1:]))
