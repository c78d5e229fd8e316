"""How well recall finds evidence, on the halves of REALTALK and BEAM that no weight was fitted on.

In: the folder of shared data. Out: the benchmark's reports, printed and written to
bench/results/conversation.json and .md, and the headline figures beside their targets. It runs
what `python -m bench conversations PATH --format … --chats 6-10` runs.
"""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from bench.conversations import markdown, render, run_benchmark, to_json
from bench.figures import Figure, at_least, machine, show, write

HELD_OUT = "6-10"
SETS = (("realtalk", "realtalk", 0.56), ("beam", "beam-100k", 0.55))


def run(data: Path) -> list[Figure]:
    """Run both data sets; print and keep the reports."""
    reports = {}
    figures = []
    for form, folder, target in SETS:
        report = run_benchmark(data / "conversations" / folder, form, chats=HELD_OUT)
        Console(highlight=False, width=120).print(render(report))
        reports[form] = report
        reached = report.rows[-1].overall.recall_at_10
        figures.append(at_least(f"{form} chats {HELD_OUT}, recall@10", reached, target))
    ran_on = machine()
    value = {"machine": ran_on, **{form: to_json(report) for form, report in reports.items()}}
    parts = [f"# Evidence recall, chats {HELD_OUT}\n\n{ran_on}\n"]
    parts += [f"## {form}\n\n{markdown(report)}" for form, report in reports.items()]
    write("conversation", json.dumps(value, indent=1), "\n".join(parts))
    show("Evidence recall on held-out chats", figures)
    return figures
