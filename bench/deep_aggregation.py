"""Counting, order and joins over whole threads: exact answers by deep recall, beside plain recall.

In: the folder of shared data (REALTALK). Out: shares of exact answers, also in
bench/results/deep_aggregation.json and .md. A script stands for a good model: what is measured is
whether code in the sandbox can answer what the best few hits cannot. Plain recall is given the
same sums over its hits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.deep.aggregation_tasks import KINDS, Task, by_code, by_hits, said, tasks_over

from anaphora import Memory
from bench.datasets import haystacks
from bench.figures import Figure, exactly, keep

EACH = 4
TOP_K = 20


def run(data: Path) -> list[Figure]:
    """Import the chats into a temporary home, answer every task both ways; print and keep."""
    chats = [
        conversation
        for _, found in haystacks(data, "realtalk")
        for conversation in found.conversations
    ]
    # Words find what holds a word as well as vectors do, and both lanes use the same ones.
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-bench-") as home,
        Memory.open(home, embedder="hashing") as memory,
    ):
        memory.import_(chats)
        memory.ready()
        turns = list(said(memory))
        tasks = tasks_over(turns, EACH)
        figures = [Figure("turns", len(turns)), Figure("tasks", len(tasks))]
        figures += _shares(memory, tasks)
    keep("deep_aggregation", "Exact answers over whole threads (REALTALK)", figures)
    return figures


def _shares(memory: Memory, tasks: tuple[Task, ...]) -> Iterator[Figure]:
    deep = {task: by_code(memory, task)[0] == task.right for task in tasks}
    plain = {task: by_hits(memory, task, TOP_K) == task.right for task in tasks}
    yield exactly("exact by deep recall", sum(deep.values()) / len(tasks), 1.0)
    yield Figure(f"exact by plain recall, {TOP_K} hits", sum(plain.values()) / len(tasks))
    for kind in KINDS:
        own = [task for task in tasks if task.kind == kind]
        yield Figure(f"{kind}: deep recall", sum(deep[task] for task in own) / len(own))
        yield Figure(f"{kind}: plain recall", sum(plain[task] for task in own) / len(own))
