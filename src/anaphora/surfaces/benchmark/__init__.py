"""How well old turns are found, measured on conversations whose questions have known evidence.

In: a data set's path and format. Out: a frozen `BenchmarkReport`; `render` and `markdown` draw it
for people, `to_json` gives plain values. It takes the public road only: the same import and the
same recall that users have, in a home of its own.
"""

from __future__ import annotations

from anaphora.surfaces.benchmark.render import markdown, render, to_json
from anaphora.surfaces.benchmark.report import BenchmarkReport, Latency, Row, Scores
from anaphora.surfaces.benchmark.run import parse_chats, run_benchmark

__all__ = [
    "BenchmarkReport",
    "Latency",
    "Row",
    "Scores",
    "markdown",
    "parse_chats",
    "render",
    "run_benchmark",
    "to_json",
]
