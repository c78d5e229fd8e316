"""Files of every format with other keys and types, and a folder with one broken file in ten.

`python -m bench.mutants [--count 20000] [--seed 1] [--files 500]`: how many of the mutants that
`tests/fuzz/shapes.py` makes end a reader, which must be none; then a folder of mixed files is
imported, and each that is broken must be told by its name. Exits with 1 where that is not so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.exported import exported
from tests.fuzz.targets import TARGETS, Extent, fuzz
from tests.ingest.mixed_folder import write_mixed

from anaphora import Memory


def mutants(count: int, seed: int) -> int:
    """Read so many, and print how many failed by what was raised."""
    with tempfile.TemporaryDirectory() as folder:
        extent = Extent(0, calls=count, counting=True)
        tally = fuzz(TARGETS["shapes"], Path(folder), None, seed, extent)
    failed = tally.failures.total()
    print(
        f"{tally.inputs:,} mutants of keys and types (seed {seed}) in {tally.seconds:.0f} s: "
        f"{failed} failed {dict(tally.failures) or ''}"
    )
    return failed


def mixed(files: int) -> int:
    """Import a folder of so many files, and print the account of it; what is in no account."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "given")
        written = write_mixed(folder, files)
        with Memory.open(Path(place, "home"), embedder="hashing") as memory:
            begun = time.perf_counter()
            report = memory.import_(folder)
            seconds = time.perf_counter() - begun
            names = [one.conversation_id for one in memory.conversations.list()]
            threads = [memory.conversations.get(name) for name in names]
            texts = {turn.text for thread in threads if thread for turn in thread.turns}
            texts |= {line["text"] for line in exported(memory, "memory")}
    lost = [text for text in written.said if text not in texts]
    told = {Path(problem.path).name for problem in report.problems}
    untold = [name for name in written.broken if name not in told]
    print(
        f"{files} files in {seconds:.1f} s: {len(written.said) - len(lost)} of "
        f"{len(written.said)} texts came in, {len(written.broken) - len(untold)} of "
        f"{len(written.broken)} broken files told by name; left out: {dict(report.left_out)}"
    )
    return len(lost) + len(untold)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=500)
    given = parser.parse_args()
    failed = mutants(given.count, given.seed)
    sys.exit(1 if failed + mixed(given.files) else 0)


if __name__ == "__main__":
    main()
