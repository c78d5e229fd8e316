"""How well old turns are found, measured on conversations whose questions have known evidence.

`run_benchmark` imports a data set into a home of its own and asks its questions through `Memory`,
as a user would; `render` and `markdown` draw its report for people, `to_json` gives plain values.
"""

from __future__ import annotations

from bench.conversations.render import markdown, render, to_json
from bench.conversations.report import BenchmarkReport, Latency, Row, Scores
from bench.conversations.run import parse_chats, run_benchmark

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
