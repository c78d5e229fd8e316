"""`python -m bench.parts --data DIR [--set NAME …] [--lane LANE] [--cache DIR]`.

Prints the table. A run over all sets and lanes writes bench/results/parts.json and .md; one over
some of them, or with `--limit`, writes only the files that it is given.
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import ExitStack
from pathlib import Path

from bench.figures import machine, write
from bench.parts.asking import ask_sets
from bench.parts.report import page, rows_of
from bench.parts.sets import LANES, SETS


def main() -> None:
    """Run with the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.parts", description="Is recall ever worse than its parts?"
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), help="only these")
    parser.add_argument("--lane", choices=LANES, help="only this lane")
    parser.add_argument("--limit", type=int, help="at most so many questions of a set and lane")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors between runs")
    parser.add_argument("--json", type=Path, help="a file for the rows")
    parser.add_argument("--per-question", type=Path, help="a file for a JSON line a question")
    options = parser.parse_args()
    began = time.perf_counter()
    lanes = LANES if options.lane is None else (options.lane,)
    chosen = [(name, lane) for name in options.set for lane in lanes]
    with ExitStack() as stack:
        details = options.per_question and stack.enter_context(
            options.per_question.open("w", encoding="utf-8")
        )
        outcomes = list(
            ask_sets(
                options.data, chosen, cache=options.cache, limit=options.limit, details=details
            )
        )
    rows = rows_of(outcomes)
    value = {"machine": machine(), "rows": [row.as_json() for row in rows]}
    text = page(rows, outcomes)
    if options.json is not None:
        options.json.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    if set(options.set) == set(SETS) and options.lane is None and options.limit is None:
        write("parts", json.dumps(value, indent=1), text)
    print(text)
    print(f"\n{len(outcomes)} questions in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
