"""What scale measurements found, as tables: bench/results/scale.json and scale.md.

In: the value that `bench.scale` gathers. Out: two files; ids of hits, which only serve to be
compared, are in the JSON file while a comparison waits for them. It measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import write as write_files

__all__ = ["table", "write"]

_ROWS: Final = (
    ("first recall of a process, its opening included", "first_ms", "ms"),
    ("recall less E, p50", "recall_p50_ms", "ms"),
    ("recall less E, p99", "recall_p99_ms", "ms"),
    ("repeated recall, p50", "again_p50_ms", "ms"),
    ("first filtered recall", "first_filtered_ms", "ms"),
    ("filter that leaves 1 of 20, p50", "wide_p50_ms", "ms"),
    ("filter that leaves 1 of 140, p50", "narrow_p50_ms", "ms"),
    ("resident memory after the first recall", "resident_mb", "MB"),
    ("the most there was while it asked", "most_mb", "MB"),
    ("the most there was while it wrote", "most_writing_mb", "MB"),
    ("remember less E, p50", "remember_p50_ms", "ms"),
    ("remember less E, p99", "remember_p99_ms", "ms"),
    ("recall after a write, p50", "recall_after_write_p50_ms", "ms"),
    ("recall after a write, p99", "recall_after_write_p99_ms", "ms"),
    ("forget for good, the first", "forget_ms", "ms"),
    ("forget for good, the next", "second_forget_ms", "ms"),
    ("closing after them", "close_ms", "ms"),
    ("recall@10 against exact, mode vector", "vector_same_of_10", ""),
    ("the same of ten hits, mode hybrid", "hybrid_same_of_10", ""),
)


def write(value: Mapping[str, Any]) -> None:
    """Both files."""
    lines = [f"# {value['title']}", "", str(value["machine"]), "", *_filling(value["filling"])]
    sizes = sorted(map(int, value["sizes"]))
    columns = [(s, w) for s in sizes for w in ("exact", "ann") if w in value["sizes"][str(s)]]
    if columns:
        head = ["", *(f"{s:,} {'LanceDB' if w == 'ann' else 'exact'}" for s, w in columns)]
        rows = []
        for name, key, unit in _ROWS:
            cells = [_cell(value["sizes"][str(s)][w].get(key), unit) for s, w in columns]
            if any(cells):
                rows.append([name, *cells])
        lines += ["", "## Questions and single writes", "", *table(head, rows)]
        head = ["on disk, MB", *(f"{s:,}" for s in sizes)]
        rows = [
            [part, *(_cell(value["sizes"][str(s)]["disk"].get(part), "MB") for s in sizes)]
            for part in ("truth", "words", "ann")
        ]
        lines += ["", "## Disk", "", *table(head, rows)]
        bulk = [f"{size:,}" for size in sizes if value["sizes"][str(size)].get("bulk")]
        if bulk:
            lines += [
                "",
                f"Written to truth in bulk beyond {value['said']:,.0f}: {', '.join(bulk)}.",
            ]
    findings = Path(__file__).with_name("findings.md")
    if findings.is_file():
        lines += ["", findings.read_text("utf-8")]
    write_files("scale", json.dumps(value, indent=1), "\n".join(lines))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose first column is words."""
    line = "|---|" + "---:|" * (len(head) - 1)
    return ["| " + " | ".join(one) + " |" if one else line for one in (head, (), *rows)]


def _filling(done: Sequence[Mapping[str, float]]) -> list[str]:
    marks = (1_000, 10_000, 50_000, 100_000, 150_000, 200_000, 300_000, 500_000, 750_000, 1_000_000)
    head = ["memories", "memories/s", "milliseconds of processor each", "to settle and close, s"]
    rows = []
    for one in done:
        if int(one["rows"]) in marks:
            speed = one["added"] / one["seconds"]
            each = 1000 * one["processor"] / one["added"]
            settled = f"{one['settled']:,.1f}" if one["settled"] else ""
            rate = f"{speed:,.0f}" + (" in bulk" if one.get("bulk") else "")
            rows.append([f"{int(one['rows']):,}", rate, f"{each:.2f}", settled])
    return ["## Filling by `remember_many`, vectors given", "", *table(head, rows)]


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    shown = f"{value:,.3f}" if not unit else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
    return f"{shown} {unit}".strip()
