"""What single adds cost: disk growth, time an add and a question's time, one `remember` at a time.

In: the shared data's conversations (or sentences made here without them). Out: figures beside
their targets, also in bench/results/single_adds.json and .md. The home lies in a temporary folder,
with its fsyncs. An add over its embedding is the whole call less what the same text takes to embed
alone, measured just before it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from anaphora import Memory
from anaphora.embed.service import EmbedderService, spec_for
from bench.figures import Figure, at_most, keep, percentile
from bench.measuring import size_of
from bench.memory_texts import turns

HASHED = 5_000
MINILM = 1_000
QUESTIONS = 200
WARM = 20
BYTES_EACH = 12_000
"""What an add may cost on the disk: about 800 bytes are its vector, the rest rows and indexes."""

ResultT = TypeVar("ResultT")


def run(data: Path | None = None, *, hashed: int = HASHED, minilm: int = MINILM) -> list[Figure]:
    """Both embedders, one after the other. Prints and keeps the figures."""
    texts = turns(data, max(hashed, minilm))
    figures = [*_adds("hashing", texts[:hashed]), *_adds("minilm", texts[:minilm])]
    keep("single_adds", "The cost of single adds", figures)
    return figures


def _timed(call: Callable[[], ResultT]) -> tuple[float, ResultT]:
    began = time.perf_counter()
    result = call()
    return (time.perf_counter() - began) * 1000, result


def _adds(embedder: str, texts: Sequence[str]) -> list[Figure]:
    alone = EmbedderService(spec_for(embedder), cache_size=0)
    alone.ready()
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        with Memory.open(home, embedder=embedder, cache_size=0) as memory:
            memory.ready()
            for number in range(WARM):
                memory.remember(f"the first ones make the database and load it: {number}")
            whole, over = _remembered(memory, alone, texts)
            grown = size_of(home)
            asked = texts[:: max(1, len(texts) // QUESTIONS)][:QUESTIONS]
            recalled = [_timed(lambda q=q: memory.recall(q)) for q in asked]  # type: ignore[misc]
            found = sum(
                any(hit.text == q for hit in r) for q, (_, r) in zip(asked, recalled, strict=True)
            )
        closed = size_of(home)
    embedded = statistics.median(_timed(lambda q=q: alone.query(q))[0] for q in asked)  # type: ignore[misc]
    count = len(texts)
    tail = max(1, count // 10)
    recall = [spent for spent, _ in recalled]
    return [
        Figure(f"{embedder}: single adds", count),
        at_most(f"{embedder}: over its embedding, p50", statistics.median(over), 4.0, "ms"),
        Figure(f"{embedder}: over its embedding, p99", percentile(over, 0.99), "ms"),
        Figure(f"{embedder}: the first tenth, p50", statistics.median(over[:tail]), "ms"),
        Figure(f"{embedder}: the last tenth, p50", statistics.median(over[-tail:]), "ms"),
        Figure(f"{embedder}: with its embedding, p50", statistics.median(whole), "ms"),
        at_most(f"{embedder}: disk, each add", grown / count, BYTES_EACH, "bytes"),
        Figure(f"{embedder}: disk, all", grown / 1e6, "MB"),
        Figure(f"{embedder}: disk after closing", closed / 1e6, "MB"),
        at_most(
            f"{embedder}: recall over its embedding after them, p50",
            statistics.median(recall) - embedded,
            2.0,
            "ms",
        ),
        Figure(f"{embedder}: recall after them, p99", percentile(recall, 0.99), "ms"),
        Figure(f"{embedder}: share of what was added that is found", found / len(asked)),
    ]


def _remembered(
    memory: Memory, alone: EmbedderService, texts: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Milliseconds of each add, and of each without its embedding."""
    whole, over = [], []
    for text in texts:
        embedding, _ = _timed(lambda text=text: alone.embed([text]))  # type: ignore[misc]
        spent, _ = _timed(lambda text=text: memory.remember(text))  # type: ignore[misc]
        whole.append(spent)
        over.append(spent - embedding)
    return whole, over
