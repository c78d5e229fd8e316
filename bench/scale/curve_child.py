"""One process that uses a home: `python -m bench.scale.curve_child index|ask|write HOME …`.

In: a home that `bulk` made. Out: one line of JSON, times in milliseconds without embedding, memory
in megabytes. `index` makes its words, `ask` (a JSON file of questions) changes nothing, `write`
(the folder of the pool's vectors) leaves some memories more, and two less.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from anaphora import Memory
from anaphora.embed.service import spec_for
from bench.figures import percentile
from bench.measuring import memory_of, size_of
from bench.scale.material import PoolEmbedder, pool
from bench.timed import TimedEmbedder

WRITES: Final = 100
_PAGE: Final = b"\0" * 4_096
_TOP: Final = 10

Found = dict[str, Any]


class _Timer:
    """Times calls, and takes off what they spent inside the embedder."""

    def __init__(self, embedder: TimedEmbedder) -> None:
        self._embedder = embedder

    def ms(self, call: Callable[[], object]) -> float:
        """Milliseconds of one call less its embedding."""
        before, began = self._embedded(), time.perf_counter()
        call()
        spent = time.perf_counter() - began
        return 1000 * (spent - (self._embedded() - before))

    def _embedded(self) -> float:
        return self._embedder.seconds + self._embedder.query_seconds


def index(home: Path) -> Found:
    """Make the words of a home that has none, as its first opening does."""
    began = time.perf_counter()
    with Memory.open(home, embedder=PoolEmbedder(spec_for("minilm").load())) as memory:
        memory.recall("what was said first?")
        memory.ready()
    return {"indexed_s": time.perf_counter() - began}


def ask(home: Path, questions: Sequence[str]) -> Found:
    """What a process that only recalls takes."""
    embedder = TimedEmbedder(PoolEmbedder(spec_for("minilm").load()))
    timer = _Timer(embedder)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=embedder) as empty:
        # What a program loads once is no part of opening a home.
        empty.recall("what was said first?")
    found: Found = {"without_home_mb": memory_of("VmRSS"), "disk_mb": size_of(home) / 1e6}
    with Memory.open(home, embedder=embedder) as memory:
        found["open_ms"] = timer.ms(lambda: memory.recall("what was said first?"))
        memory.recall("what was said second?")
        # The quantized form of the vectors is made beside the first questions.
        memory.ready()
        asked = [timer.ms(lambda q=one: memory.recall(q)) for one in questions]  # type: ignore[misc]
    return found | _spread("question", asked) | {"resident_mb": memory_of("VmRSS")}


def write(home: Path, vectors: Path) -> Found:
    """What single writes take, and what forgetting two of the older memories does."""
    embedder = TimedEmbedder(PoolEmbedder(spec_for("minilm").load(), pool(Path(), vectors)))
    timer = _Timer(embedder)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder, embedder=embedder) as other:
        kept = other.remember("what was said first?")
        other.recall("what was said first?")
        other.forget(kept.id)
    memory = Memory.open(home, embedder=embedder)
    memory.recall("what was said first?")
    found = _spread("fsync", _synced(home))
    found |= _spread("write", [_written(timer, memory, number) for number in range(WRITES)])
    old = [hit.id for hit in memory.recall("what was said first?", top_k=_TOP).hits]
    found["forget_first_ms"] = timer.ms(lambda: memory.forget(old[0]))
    found["forget_ms"] = timer.ms(lambda: memory.forget(old[1]))
    found["close_ms"] = timer.ms(memory.close)
    return found


def _written(timer: _Timer, memory: Memory, number: int) -> float:
    text = f"Note {number}: the parcel for number {number * 7 % 991} was left with a neighbour."
    return timer.ms(lambda: memory.remember(text))


def _synced(home: Path) -> list[float]:
    """What the disk takes to keep a page: milliseconds of writing it and waiting for it."""
    found, place = [], home / "sync-alone"
    with place.open("wb", buffering=0) as file:
        for _ in range(WRITES):
            began = time.perf_counter()
            file.write(_PAGE)
            os.fsync(file.fileno())
            found.append(1000 * (time.perf_counter() - began))
    place.unlink()
    return found


def _spread(name: str, times: Sequence[float]) -> Found:
    return {f"{name}_p50_ms": percentile(times, 0.5), f"{name}_p99_ms": percentile(times, 0.99)}


def main() -> None:
    """Read the arguments, measure, tell."""
    what, home, *given = sys.argv[1], *map(Path, sys.argv[2:])
    if what == "index":
        found = index(home)
    elif what == "ask":
        found = ask(home, json.loads(given[0].read_text("utf-8")))
    else:
        found = write(home, given[0])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
